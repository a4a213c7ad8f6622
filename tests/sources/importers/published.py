"""Rows after the published schemas, made for the tests: none is copied from a benchmark."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jurygraph.schema import TaskLine
from jurygraph.sources.importers import READERS, Imported

Row = dict[str, Any]

HEALTHBENCH: list[Row] = [
    {
        "prompt_id": "11111111-aaaa",
        "prompt": [
            {"role": "user", "content": "My knee hurts."},
            {"role": "assistant", "content": "Since when?"},
            {"role": "user", "content": "Since Monday."},
        ],
        "rubrics": [
            {"criterion": "Asks about a fall.", "points": 7, "tags": ["level:example", "axis:context_awareness"]},
            {"criterion": "Names a drug and its dose.", "points": -5, "tags": ["axis:accuracy"]},
            {"criterion": "Is short.", "points": 2.5, "tags": []},
        ],
        "example_tags": ["theme:context_seeking"],
        "canary": "made for a test",
        "ideal_completions_data": {
            "ideal_completion": "Did you fall?",
            "ideal_completions_group": "Group 2",
            "ideal_completions_ref_completions": ["Rest it.", "See a doctor."],
        },
    },
    {  # neither an ideal completion nor tags
        "prompt_id": "22222222-bbbb",
        "prompt": [{"role": "system", "content": "You are a nurse."}, {"role": "user", "content": "我发烧了。"}],
        "rubrics": [{"criterion": "Asks how high.", "points": "5", "tags": None}],
        "example_tags": None,
        "ideal_completions_data": None,
    },
    {  # group 1 had no reference completions before it; everything optional is missing
        "prompt_id": 3,
        "prompt": [{"role": "user", "content": "Hi", "name": "Ann"}],
        "rubrics": [{"criterion": "Greets.", "points": 1, "reasoning": "manners"}],
        "ideal_completions_data": {"ideal_completion": "Hello", "ideal_completions_ref_completions": None},
    },
]

PLAWBENCH: list[Row] = [
    {
        "label": "个人生活",
        "context": "甲借款给乙，乙未还。",
        "question": "乙应当还款吗？",
        "rubrics": [
            {"criterion": "【结论得分】\n（+5分）乙应当还款。", "points": "5", "tags": "结论得分"},
            {
                "criterion": "【案情简述得分】（共15分）\n（+5分）甲借款给乙。\n(+10分) 乙未还。（未提及“未还”扣2分）",
                "points": "15",
                "tags": "案情简述得分",
            },
            {
                "criterion": "按顺序。\n一是合同。（＋5分）\n（1）提及合同；\n二是违约。（+2.5 分）\n（1）提及违约。",
                "points": "7.5",
                "tags": "分析过程得分",
            },
            {"criterion": "（+5）第675条\n（+5）第676条", "points": "15", "tags": "法条依据得分"},
        ],
    },
    {  # no label, no context, points as numbers, tags as a list, and a reference answer
        "context": None,
        "question": "Is it theft?",
        "rubrics": [{"criterion": "It is. (+3) Or not. (+3)", "points": 6, "tags": ["conclusion"]}],
        "reference": "It is not.",
    },
    {  # another rubric for the same question
        "context": "",
        "question": "Is it theft?",
        "rubrics": [{"criterion": "It is.", "points": 5.0, "tags": None, "scorer": "b"}],
        "split": "extra",
    },
]

WRITINGBENCH: list[Row] = [
    {
        "index": 7,
        "domain1": "Politics & Law",
        "domain2": "Speech",
        "lang": "en",
        "query": "Write a speech.",
        "checklist": [
            {
                "name": "Warmth",
                "criteria_description": "How warm it is.",
                "1-2": "cold",
                "3-4": "cool",
                "5-6": "tepid",
                "7-8": "warm",
                "9-10": "glowing",
            },
            {"name": "Length", "criteria_description": None, "1-2": "none", "9-10": "", "weight": 3},
        ],
    },
    {
        "index": "8",
        "domain1": None,
        "query": "写一封信。",
        "checklist": [{"name": "Tone", "criteria_description": "t"}],
    },
]

REWARDBENCH: list[Row] = [
    {  # the first
        "id": 30,
        "prompt": "Name a colour.",
        "chosen": "Red.",
        "chosen_model": "good-7b",
        "rejected": "Seven.",
        "rejected_model": "bad-7b",
        "subset": "alpacaeval-easy",
    },
    {  # which of the models it was need not be known
        "id": 30,
        "prompt": [{"role": "user", "content": "Name a day."}],
        "chosen": "",
        "chosen_model": None,
        "rejected": "Red.",
        "subset": "donotanswer",
        "section": "Safety",
    },
    {  # the second
        "id": "tied:4",
        "prompt": "Name a month.",
        "chosen": ["May", "June"],
        "rejected": ["Monday", "Noon", "Nine"],
        "models": ["m1", "m2", "m3", "m4", "m5"],
        "subset": "Ties",
        "additional_metadata": {"category": None, "index": 4.0, "instruction_id_list": []},
    },
    {  # other counts than it holds, and fewer models
        "id": "5",
        "prompt": "Name a year.",
        "chosen": ["1999"],
        "rejected": ["Monday"],
        "models": ["m1"],
        "subset": "Math",
        "additional_metadata": None,
    },
    {"id": "6", "prompt": "Nothing is right.", "chosen": [], "rejected": ["Monday"], "subset": "Ties"},
    {"id": 7, "prompt": "", "chosen": "a", "rejected": "a", "subset": None},
]

JUDGEBENCH: list[Row] = [
    {
        "pair_id": "e1-a",
        "original_id": 1420,
        "source": "mmlu-pro-law",
        "question": "Which?",
        "response_model": "gpt-4o-2024-05-13",
        "response_A": "The first.",
        "response_B": "The second.",
        "label": "B>A",
    },
    {
        "pair_id": "e1-b",
        "original_id": None,
        "source": "livecodebench",
        "question": "Which?",
        "response_model": "gpt-4o-2024-05-13",
        "response_A": "The same.",
        "response_B": "The same.",
        "label": "A>B",
        "judge": {"votes": 3},
    },
    {"pair_id": 3, "question": "Who?", "response_A": "", "response_B": "Ann", "label": "B>A"},
]

GROUPTRAVELBENCH: list[Row] = [
    {
        "task_id": "task_a",
        "query": "甲市、乙县，三天两夜，2人的旅行计划",
        "time": "2031-04-05",
        "context": "出发城市：丙市；出行日期：2031-04-05；团队类型：姐弟（共2人）",
        "metadata": {"departure_city": "丙市", "cities": ["甲市", "乙县"], "date": "三天两夜", "child_members": []},
        "user_preferences": {
            "User2": {
                "role": "弟弟",
                "preference": {
                    "global_constraints": {
                        "avg_budget": 1800,
                        "transport": {"must": [], "prefer": ["轮船"], "avoid": ["飞机"], "reject": ["自驾"]},
                        "intensity": {"max_poi_per_day": 2, "max_active_hours": 7.5},
                        "hotel_preference": {"prefer": [], "avoid": ["青旅"]},
                    },
                    "city_specific_preferences": {},
                },
                "compromisable": False,
            },
            "User1": {
                "role": "姐姐",
                "preference": {
                    "global_constraints": {
                        "avg_budget": 2500,
                        "transport": {"must": ["高铁", "轮船"], "prefer": [], "avoid": [], "reject": []},
                        "intensity": {"max_poi_per_day": 0, "max_active_hours": 0},
                        "hotel_preference": {"prefer": ["民宿"], "avoid": []},
                    },
                    "city_specific_preferences": {
                        "甲市": {
                            "attractions": {
                                "must_visit": ["甲塔"],
                                "reject_visit": ["旧矿"],
                                "category_pref": {"positive": ["园林"], "negative": ["鬼屋"]},
                            },
                            "food": {
                                "must_eat": ["面"],
                                "prefer_eat": ["粥"],
                                "avoid_eat": ["辣"],
                                "reject_eat": ["生食"],
                            },
                        },
                        "乙县": {"attractions": {"must_visit": ["甲塔"]}, "food": None},
                    },
                },
                "compromisable": True,
            },
        },
        "initial_messages": [
            {"role": "User1", "content": "甲塔我一定要去。"},
            {"role": "User2", "content": "我最多花1800元。"},
        ],
        "difficulty_score": 2.5,
        "difficulty_type": "easy",
    },
    {  # everything optional is missing
        "task_id": 7,
        "query": "A day out for two",
        "user_preferences": {
            "Ann": {"role": "aunt", "preference": {"global_constraints": {"avg_budget": 90}}},
            "Ben": {"role": "", "preference": {"global_constraints": {"transport": {"must": ["tram"]}}}},
        },
    },
]

ROWS: Mapping[str, list[Row]] = {
    "healthbench": HEALTHBENCH,
    "plawbench": PLAWBENCH,
    "writingbench": WRITINGBENCH,
    "rewardbench": REWARDBENCH,
    "judgebench": JUDGEBENCH,
    "grouptravelbench": GROUPTRAVELBENCH,
}


def write_rows(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def import_rows(form: str, path: Path) -> list[Imported]:
    return list(READERS[form](path))


def tasks(form: str, path: Path, *rows: Row) -> list[TaskLine]:
    """The tasks that rows of a format make, of which none may be left out."""
    made = [one.task for one in import_rows(form, write_rows(path, *rows))]
    assert None not in made
    return [one for one in made if one is not None]


def notes_of(form: str, path: Path, *rows: Row) -> list[tuple[str, str]]:
    """Return the notes about rows of a format."""
    return [tuple(note) for one in import_rows(form, write_rows(path, *rows)) for note in one.notes]
