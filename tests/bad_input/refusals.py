"""Where each case in `cases` is refused, and what would be right; the words for what is wrong may change."""

from typing import NamedTuple


class Refusal(NamedTuple):
    """The file, with line and field or key where there is one, and the remedy at the end of the message."""

    place: str
    remedy: str


STORED = {
    "apart_and_inline": Refusal("tasks.jsonl, line 2, field responses", "leave out one of the two"),
    "apart_empty": Refusal("responses.jsonl", "write one response a line, each a JSON object"),
    "apart_id_twice": Refusal(
        "responses.jsonl, line 2, field id", "give each response an id of its own"
    ),
    "apart_none_for_a_task": Refusal(
        "tasks.jsonl, line 2, field responses", "give it one, or leave it out"
    ),
    "apart_to_an_unknown_task": Refusal(
        "responses.jsonl, line 2, field task", "did you mean salt?"
    ),
    "apart_without_a_task": Refusal(
        "responses.jsonl, line 1, field task", "every response needs it"
    ),
    "clip_of_one_end": Refusal("jury.yaml, line 12, key clip", "write a pair of two"),
    "clip_that_falls": Refusal(
        "jury.yaml, line 12, key clip", "write the lower end first, such as [0, 1]"
    ),
    "component_of_an_unknown_combiner": Refusal(
        "jury.yaml, line 13, key components.tone.combiner", "did you mean mean?"
    ),
    "component_of_what_is_not_asked": Refusal(
        "jury.yaml, line 13, key components.tone.inputs.tone", "did you mean judges.polite?"
    ),
    "component_of_what_is_not_asked_of_a_task": Refusal(
        "jury.yaml, line 6, key components.total.inputs.met", "did you mean criteria?"
    ),
    "component_with_a_wrong_parameter": Refusal(
        "jury.yaml, line 13, key components.tone.params.prior", "write a number of 100 or less"
    ),
    "config_a_list": Refusal(
        "jury.yaml, line 1", "write lines such as `evaluators: [maths.accuracy]`"
    ),
    "config_empty": Refusal("jury.yaml", "it needs `evaluators: [...]` at least"),
    "config_key_a_number": Refusal("jury.yaml, line 12", "put it in quotes"),
    "config_key_itself": Refusal(
        "jury.yaml, line 13, key calls.key", "name the one that holds the key"
    ),
    "config_key_twice": Refusal("jury.yaml, line 12, key evaluators", "keep one of them"),
    "config_model_of_an_unknown_kind": Refusal(
        "jury.yaml, line 12, key model",
        "write provider/name, as openai/gpt-5 for one of OpenAI; or none, openai-compatible:URL#model, gguf:PATH, "
        "replay:PATH, langchain:package.module.name or provider/model",
    ),
    "config_model_an_object": Refusal(
        "jury.yaml, line 12, key model",
        "write text, in quotes: openai/gpt-5-mini, or openai-compatible:URL#NAME",
    ),
    "config_not_a_number": Refusal(
        "jury.yaml, line 9, key reward.brief", "write a number that a 64-bit float can hold"
    ),
    "config_number_as_a_text": Refusal(
        "jury.yaml, line 9, key reward.brief", "write a number, without quotes"
    ),
    "config_of_another_version": Refusal(
        "jury.yaml, line 1, key version", "this jurygraph reads configs of version 1"
    ),
    "config_secret_parameter": Refusal(
        "jury.yaml, line 15, key calls.parameters.api_key",
        "set the environment variable that the provider's client reads",
    ),
    "config_unknown_inner_key": Refusal(
        "jury.yaml, line 14, key failure.min_coverge", "did you mean min_coverage?"
    ),
    "config_unknown_key": Refusal("jury.yaml, line 7, key rewards", "did you mean reward?"),
    "config_without_evaluators": Refusal(
        "jury.yaml, line 1, key evaluators", "every config needs it"
    ),
    "config_yes_for_a_truth": Refusal(
        "jury.yaml, line 12, key langsmith", "write true or false, without quotes"
    ),
    "criteria_with_the_same_text": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria[1].text",
        "leave one of them out, or write how they differ",
    ),
    "criterion_of_weight_0": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria[1].weight",
        "give it a weight, or leave the criterion out",
    ),
    "criterion_scale_falls": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria[0].scale",
        "write the lower end first, such as [0, 1]",
    ),
    "criterion_twice": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria[1].id", "give each criterion an id of its own"
    ),
    "defaults_check_of_an_unknown_function": Refusal(
        "jury.yaml, line 5, key task_defaults.stakeholders[1]",
        "list it in the params of checks.constraints",
    ),
    "defaults_reviewer_without_a_history": Refusal(
        "jury.yaml, line 5, key task_defaults.reviewers[1]", "did you mean ben?"
    ),
    "defaults_rubric_with_a_cycle": Refusal(
        "jury.yaml, line 3, key task_defaults.rubric", "leave out one of these edges"
    ),
    "defaults_stakeholder_without_a_weight": Refusal(
        "jury.yaml, line 4, key task_defaults.stakeholders",
        "add one, or set weights.method to uniform or calibrated",
    ),
    "defaults_table_outside_the_folder_of_the_tasks": Refusal(
        "jury.yaml, line 8, key task_defaults.facts.tables.hours.file",
        "move the file there, or allow files elsewhere with --allow-files-outside",
    ),
    "edge_of_an_unknown_kind": Refusal(
        "tasks.jsonl, line 1, field rubric.edges[0].kind",
        "did you mean strong? write 'weak', 'strong' or 'activation'",
    ),
    "edge_retention_above_1": Refusal(
        "tasks.jsonl, line 1, field rubric.edges[0].retention", "write a number of 1 or less"
    ),
    "edge_to_an_unknown_criterion": Refusal(
        "tasks.jsonl, line 1, field rubric.edges[0].child", "did you mean 'thanks'?"
    ),
    "edge_to_itself": Refusal(
        "tasks.jsonl, line 1, field rubric.edges[0]", "name two criteria, or leave it out"
    ),
    "edge_twice": Refusal("tasks.jsonl, line 1, field rubric.edges[1]", "keep one of them"),
    "evaluator_as_a_key": Refusal(
        "jury.yaml, line 7, key evaluators[4].criteria",
        "write `use: criteria`, and what it takes below `params`",
    ),
    "evaluator_params_that_do_not_fit": Refusal(
        "jury.yaml, line 4, key evaluators[1]",
        "change the function, or the params; its params: none",
    ),
    "evaluator_that_does_not_import": Refusal(
        "jury.yaml, line 4, key evaluators[1]", "install what it needs, or fix it"
    ),
    "evaluator_that_raises_on_import": Refusal(
        "jury.yaml, line 4, key evaluators[1]", "division by zero; fix it"
    ),
    "evaluator_twice": Refusal(
        "jury.yaml, line 6, key evaluators[3]",
        "give one of them a `name` of its own, such as `name: brief_2`",
    ),
    "evaluator_unknown": Refusal(
        "jury.yaml, line 4, key evaluators[1]", "did you mean maths.accuracy?"
    ),
    "evaluator_unknown_in_its_module": Refusal(
        "jury.yaml, line 4, key evaluators[1]", "did you mean brief?"
    ),
    "evaluator_waits_for_an_unknown_question": Refusal(
        "tasks.jsonl, line 1", "did you mean 'judges.polite'?"
    ),
    "gate_of_an_unknown_component": Refusal(
        "jury.yaml, line 13, key gates[0]", "did you mean polite?"
    ),
    "gate_of_an_unknown_kind": Refusal(
        "jury.yaml, line 13, key gates[0].kind",
        "did you mean format? write 'format', 'precision', 'repetition'",
    ),
    "gates_twice_of_a_kind": Refusal("jury.yaml, line 12, key gates", "keep one"),
    "json_1e999": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria[0].weight", "a 64-bit float holds up to 1.7e308"
    ),
    "json_array_instead_of_an_object": Refusal(
        "tasks.jsonl, line 1", 'each line is one JSON object, such as {"id": "a", …}'
    ),
    "json_half_a_surrogate_pair": Refusal(
        "tasks.jsonl, line 1, field responses[0].text", "write the whole character"
    ),
    "json_infinity": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria[0].weight",
        "write a number, or leave the field out",
    ),
    "json_key_twice": Refusal("tasks.jsonl, line 1, field query", "keep one of them"),
    "json_nan": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria[0].weight",
        "write a number, or leave the field out",
    ),
    "json_truncated_on_line_7": Refusal(
        "tasks.jsonl, line 7",
        "each line is one whole JSON object, as `jq -c .` writes it, or `jq -c '.[]'` of an array",
    ),
    "json_two_objects_on_a_line": Refusal(
        "tasks.jsonl, line 1", "put each object on a line of its own"
    ),
    "number_as_a_text": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria[0].weight", "write a number, without quotes"
    ),
    "number_as_a_truth": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria[0].weight", "write a number, without quotes"
    ),
    "profiles_of_a_constraint_twice": Refusal(
        "profiles.jsonl, line 1, field stakeholders[0].constraints[1].id",
        "give each constraint an id of its own",
    ),
    "profiles_of_a_stakeholder_twice": Refusal(
        "profiles.jsonl, line 1, field stakeholders[1].id", "give each stakeholder one entry"
    ),
    "profiles_of_a_task_twice": Refusal(
        "profiles.jsonl, line 2, field task", "keep one of the two"
    ),
    "profiles_of_an_unknown_kind": Refusal(
        "profiles.jsonl, line 1, field stakeholders[0].constraints[0].kind",
        "did you mean soft? write 'hard' or 'soft'",
    ),
    "profiles_of_an_unknown_stakeholder": Refusal(
        "profiles.jsonl, line 2, field stakeholders[1].id", "did you mean ben?"
    ),
    "profiles_of_an_unknown_task": Refusal(
        "profiles.jsonl, line 2, field task", "name a task of tasks.jsonl, or leave the line out"
    ),
    "profiles_of_another_profile": Refusal(
        "profiles.jsonl, line 1, field stakeholders[0].profile",
        "see what follows from the new one and copy it here, or have it read again",
    ),
    "profiles_of_somebody_with_constraints": Refusal(
        "profiles.jsonl, line 1, field stakeholders[0].id",
        "leave them out there, or the stakeholder out here",
    ),
    "profiles_tension_with_nobody": Refusal(
        "profiles.jsonl, line 1, field tensions[0].between[1]", "did you mean ben?"
    ),
    "profiles_tension_with_oneself": Refusal(
        "profiles.jsonl, line 1, field tensions[0].between",
        "name two stakeholders, or leave the tension out",
    ),
    "profiles_tensions_that_the_task_states": Refusal(
        "profiles.jsonl, line 1, field tensions", "leave them out there, or here"
    ),
    "profiles_unknown_key": Refusal(
        "profiles.jsonl, line 1, field stakeholders[0].constraints[0].weight",
        "known here: id, text, kind, restrictiveness, check, quote",
    ),
    "profiles_without_constraints": Refusal(
        "profiles.jsonl, line 1, field stakeholders[0].constraints", "give it at least 1"
    ),
    "purpose_of_its_own_judge": Refusal(
        "jury.yaml, line 3, key purpose.reward_judges",
        "name another model, or set same_judge: allow, which every trace then tells",
    ),
    "residual_questions_hold_too_much": Refusal(
        "tasks.jsonl, line 1",
        "ask it more by facts, checks or a model, share the weight out by weights.layers, or ask fewer residual "
        "questions",
    ),
    "response_as_a_bare_number": Refusal(
        "tasks.jsonl, line 1, field responses[0]", "write an object with its `text` or `messages`"
    ),
    "response_id_twice_in_a_line": Refusal(
        "tasks.jsonl, line 1, field responses[2].id", "give each response an id of its own"
    ),
    "response_id_twice_in_two_lines": Refusal(
        "tasks.jsonl, line 2, field responses[0].id", "give each response an id of its own"
    ),
    "response_text_null": Refusal(
        "tasks.jsonl, line 1, field responses[0].text", "write text, in quotes"
    ),
    "response_unknown_key": Refusal(
        "tasks.jsonl, line 1, field responses[0].txt", "did you mean text?"
    ),
    "response_without_a_text": Refusal(
        "tasks.jsonl, line 1, field responses[1].text", "every response needs it"
    ),
    "responses_empty": Refusal(
        "tasks.jsonl, line 1, field responses", "give it one, or leave it out"
    ),
    "responses_missing": Refusal(
        "tasks.jsonl, line 2, field responses", "give it one, or leave it out"
    ),
    "reviewer_without_a_history": Refusal("tasks.jsonl, line 2", "did you mean ben?"),
    "reward_left_out": Refusal(
        "jury.yaml", "there are ['brief', 'polite', 'rubric', 'stakeholders']"
    ),
    "reward_of_an_unknown_component": Refusal(
        "jury.yaml, line 9, key reward.breif", "did you mean brief?"
    ),
    "reward_of_what_a_task_does_not_have": Refusal(
        "tasks.jsonl, line 2",
        "write one in the task, for all tasks in `task_defaults`, or in a column "
        "(--rubric-column; of a trainer, rubric=); "
        "or leave such tasks out of it: `if_missing: not_applicable` at its evaluators; or leave the "
        "component out of `reward` and `gates`",
    ),
    "reward_weights_all_0": Refusal("jury.yaml, line 7, key reward", "give one component a weight"),
    "rubric_aggregation_unknown": Refusal(
        "jury.yaml, line 13, key rubric.aggregation",
        "did you mean gear? write 'flat', 'gear', 'hard-local' or 'hard-transitive'",
    ),
    "rubric_cycle": Refusal("tasks.jsonl, line 2", "leave out one of these edges"),
    "rubric_kappa_negative": Refusal(
        "jury.yaml, line 13, key rubric.kappa", "write a number of 0 or more"
    ),
    "rubric_of_penalties_alone": Refusal("tasks.jsonl, line 2", "such as `reward: {rude: -0.3}`"),
    "rubric_without_criteria": Refusal(
        "tasks.jsonl, line 1, field rubric.criteria", "give it at least 1"
    ),
    "run_is_a_file": Refusal("{folder}/run", "name a folder with --out"),
    "run_is_a_folder_of_something_else": Refusal("{folder}/run", "name another folder with --out"),
    "scale_0": Refusal("jury.yaml, line 12, key scale", "write a number above 0"),
    "stakeholder_constraint_twice": Refusal(
        "tasks.jsonl, line 1, field stakeholders[0].constraints[1].id",
        "give each constraint an id of its own",
    ),
    "stakeholder_of_a_profile_alone": Refusal(
        "tasks.jsonl, line 2",
        "list its constraints (kind, restrictiveness) in the task or in a file for --profiles-from, or name a "
        "model to read it; under weights.method uniform or fixed the difficulty is not needed, but a model has to "
        "judge the profile",
    ),
    "stakeholder_restrictiveness_negative": Refusal(
        "tasks.jsonl, line 1, field stakeholders[0].constraints[0].restrictiveness",
        "write a number of 0 or more",
    ),
    "stakeholder_twice": Refusal(
        "tasks.jsonl, line 1, field stakeholders[2].id", "give each stakeholder an id of its own"
    ),
    "table_outside_the_folder_of_the_tasks": Refusal(
        "tasks.jsonl, line 1, field facts.tables.hours.file",
        "move the file there, or allow files elsewhere with --allow-files-outside",
    ),
    "task_id_as_a_number": Refusal("tasks.jsonl, line 1, field id", "write text, in quotes"),
    "task_id_empty": Refusal("tasks.jsonl, line 1, field id", "write at least one character"),
    "task_id_twice": Refusal("tasks.jsonl, line 3, field id", "give each task an id of its own"),
    "task_key_that_writes_to_the_terminal": Refusal(
        "tasks.jsonl, line 1, field que\\n\\u001b[31mry", "did you mean query?"
    ),
    "task_message_of_an_unknown_role": Refusal(
        "tasks.jsonl, line 1, field query[0].role",
        "did you mean assistant? write 'system', 'developer', 'user', 'assistant' or 'tool'",
    ),
    "task_query_of_no_messages": Refusal(
        "tasks.jsonl, line 1, field query", "give it one message at least"
    ),
    "task_unknown_key": Refusal("tasks.jsonl, line 2, field querry", "did you mean query?"),
    "task_without_a_query": Refusal("tasks.jsonl, line 2, field query", "every task needs it"),
    "tension_between_three": Refusal(
        "tasks.jsonl, line 1, field tensions[0].between", "give it at most 2"
    ),
    "tension_with_nobody": Refusal(
        "tasks.jsonl, line 1, field tensions[0].between[1]", "did you mean 'ben'?"
    ),
    "tension_with_oneself": Refusal(
        "tasks.jsonl, line 1, field tensions[0].between",
        "name two stakeholders, or leave the tension out",
    ),
    "weights_fixed_but_calibrated": Refusal(
        "jury.yaml, line 13, key weights.fixed", "give both, or neither"
    ),
    "weights_fixed_without_a_stakeholder": Refusal(
        "jury.yaml, line 14, key weights.fixed.ben",
        "leave it out, or add the stakeholder to a task",
    ),
    "weights_temperature_0": Refusal(
        "jury.yaml, line 13, key weights.temperature", "write a number above 0"
    ),
    "yaml_alias_bomb": Refusal("jury.yaml, line 1", "write the values out"),
    "yaml_bracket_left_open": Refusal(
        "jury.yaml, line 3",
        "indent lines alike, close quotes and brackets, and quote texts that hold : # * or @",
    ),
    "yaml_indent": Refusal(
        "jury.yaml, line 9",
        "indent lines alike, close quotes and brackets, and quote texts that hold : # * or @",
    ),
    "yaml_python_object": Refusal("jury.yaml, line 2", "write a plain value"),
    "yaml_tab": Refusal("jury.yaml, line 4", "indent with spaces"),
    "yaml_two_documents": Refusal("jury.yaml, line 12", "a config is one, so take out the `---`"),
}
