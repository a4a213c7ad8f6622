from nothing_that_is_installed import measure


def brief(task, response):
    return measure(response.text)
