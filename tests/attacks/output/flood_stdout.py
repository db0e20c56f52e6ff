# @attack prints without end
# @expect output_limit
# @limits output=100K
while True:
    print("x" * 1000)
