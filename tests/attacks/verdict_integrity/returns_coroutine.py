# @attack returns a coroutine
async def f(x):
    return 2 * x
