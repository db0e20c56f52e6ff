# @attack is empty
pass
