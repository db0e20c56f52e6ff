"""Primitives of the task family: one step of a program each.

A primitive has an input and an output type, the Python statements of the step, and several English phrasings. Types and
their variables: L list of int (xs), S string (s), W list of words (words), I int (n), B bool (r).

A family groups primitives that share a *vague* phrasing: the description does not settle which one is meant; only the
tests' feedback does. A primitive with a constant {k} and a vague phrasing of its own is a family over its constants.
"""
from dataclasses import dataclass, field

VARIABLE = dict(L="xs", S="s", W="words", I="n", B="r")


@dataclass(frozen=True)
class Primitive:
    name: str
    takes: str
    gives: str
    code: str
    phrases: list
    constants: range = None
    family: str = None
    vague: list = field(default_factory=list)


PRIMITIVES = {}


def op(name, takes, gives, code, phrases, constants=None, family=None, vague=()):
    PRIMITIVES[name] = Primitive(name, takes, gives, code, phrases, constants, family, list(vague))


K = range(2, 10); K5 = range(2, 6); K4 = range(1, 5)
# ---- list -> list
op("keep_even","L","L","xs = [x for x in xs if x % 2 == 0]",["keep only the even numbers","drop the odd numbers","remove every odd value","filter the list to even values"])
op("keep_odd","L","L","xs = [x for x in xs if x % 2 == 1]",["keep only the odd numbers","drop the even numbers","remove every even value","filter the list to odd values"])
op("keep_pos","L","L","xs = [x for x in xs if x > 0]",["keep only the positive numbers","drop zeros and negatives","remove everything that is not positive"])
op("keep_neg","L","L","xs = [x for x in xs if x < 0]",["keep only the negative numbers","drop zeros and positives","remove everything that is not negative"])
VB=["keep the big numbers, with {k} as the limit","drop the values under the limit {k}"]; VS=["keep the small numbers, with {k} as the limit","drop the values over the limit {k}"]
op("keep_gt","L","L","xs = [x for x in xs if x > {k}]",["keep only the numbers greater than {k}","keep the values above {k}","remove the numbers that are {k} or less"],K,"big",VB)
op("keep_ge","L","L","xs = [x for x in xs if x >= {k}]",["keep only the numbers that are at least {k}","keep the values that are {k} or more","remove the numbers below {k}"],K,"big",VB)
op("keep_lt","L","L","xs = [x for x in xs if x < {k}]",["keep only the numbers less than {k}","keep the values below {k}","remove the numbers that are {k} or more"],K,"small",VS)
op("keep_le","L","L","xs = [x for x in xs if x <= {k}]",["keep only the numbers that are at most {k}","keep the values that are {k} or less","remove the numbers above {k}"],K,"small",VS)
op("keep_mult","L","L","xs = [x for x in xs if x % {k} == 0]",["keep only the multiples of {k}","keep the numbers divisible by {k}"],range(3,8))
op("drop_mult","L","L","xs = [x for x in xs if x % {k} != 0]",["drop the multiples of {k}","remove the numbers divisible by {k}"],range(3,8))
op("add_k","L","L","xs = [x + {k} for x in xs]",["add {k} to each number","increase every value by {k}","raise all the numbers by {k}"],K,"addk",["add a constant to each number","raise all the numbers by a fixed amount"])
op("sub_k","L","L","xs = [x - {k} for x in xs]",["subtract {k} from each number","decrease every value by {k}","lower all the numbers by {k}"],K,"subk",["subtract a constant from each number","lower all the numbers by a fixed amount"])
op("mul_k","L","L","xs = [x * {k} for x in xs]",["multiply each number by {k}","scale every value by {k}"],K5,"mulk",["multiply each number by a constant","scale every value by a fixed factor"])
op("div_k","L","L","xs = [x // {k} for x in xs]",["divide each number by {k} and round down","floor divide every value by {k}"],K5,"divk",["divide each number by a constant and round down"])
op("mod_k","L","L","xs = [x % {k} for x in xs]",["replace each number by its remainder modulo {k}","take every value modulo {k}"],range(3,10))
op("square","L","L","xs = [x * x for x in xs]",["square each number","replace every value by its square"])
op("negate","L","L","xs = [-x for x in xs]",["negate each number","flip the sign of every value"])
op("absval","L","L","xs = [abs(x) for x in xs]",["take the absolute value of each number","make every value non-negative by dropping its sign"])
op("sort_asc","L","L","xs = sorted(xs)",["sort the numbers in ascending order","sort from smallest to largest","order the list upwards"],None,"sort",["sort the numbers","put the list in sorted order"])
op("sort_desc","L","L","xs = sorted(xs, reverse=True)",["sort the numbers in descending order","sort from largest to smallest","order the list downwards"],None,"sort",["sort the numbers","put the list in sorted order"])
op("sort_abs","L","L","xs = sorted(xs, key=abs)",["sort the numbers by absolute value","order the list by distance from zero"],None,"sort",["sort the numbers","put the list in sorted order"])
op("rev","L","L","xs = xs[::-1]",["reverse the list","put the elements in reverse order"])
VD=["remove duplicates","make the values unique"]
op("dedup","L","L","xs = list(dict.fromkeys(xs))",["remove duplicates and keep the first occurrences in order","drop repeated values without changing the order"],None,"dedup",VD)
op("uniq_sorted","L","L","xs = sorted(set(xs))",["remove duplicates and sort what is left","list the distinct values in ascending order"],None,"dedup",VD)
op("dedup_last","L","L","xs = list(dict.fromkeys(xs[::-1]))[::-1]",["remove duplicates and keep the last occurrences in order","drop earlier copies of repeated values"],None,"dedup",VD)
op("uniq_desc","L","L","xs = sorted(set(xs), reverse=True)",["remove duplicates and sort what is left downwards","list the distinct values in descending order"],None,"dedup",VD)
op("take","L","L","xs = xs[:{k}]",["keep only the first {k} elements","take {k} elements from the front"],K4,"take",["keep a few elements from the front"])
op("drop","L","L","xs = xs[{k}:]",["drop the first {k} elements","skip {k} elements at the front"],K4,"dropk",["skip a few elements at the front"])
op("last","L","L","xs = xs[-{k}:]",["keep only the last {k} elements","take {k} elements from the end"],K4,"lastk",["keep a few elements from the end"])
op("drop_last","L","L","xs = xs[:-{k}]",["drop the last {k} elements","cut {k} elements off the end"],K4,"droplast",["cut a few elements off the end"])
VE=["thin out the list evenly","keep only some elements at regular steps"]
op("every0","L","L","xs = xs[::2]",["keep the elements at even indexes","take every second element, starting with the first"],None,"every",VE)
op("every1","L","L","xs = xs[1::2]",["keep the elements at odd indexes","take every second element, starting with the second"],None,"every",VE)
op("every2","L","L","xs = xs[::3]",["keep the elements at indexes 0, 3, 6 and so on","take every third element, starting with the first"],None,"every",VE)
op("running","L","L","total = 0\nout = []\nfor x in xs:\n    total += x\n    out.append(total)\nxs = out",["replace the list by its running sums","compute the cumulative sums","build the list of prefix sums"])
op("running_max","L","L","out = []\nfor x in xs:\n    if out and out[-1] > x:\n        x = out[-1]\n    out.append(x)\nxs = out",["replace the list by its running maximum","at each position keep the largest value so far"])
op("diffs","L","L","xs = [b - a for a, b in zip(xs, xs[1:])]",["compute the differences between neighbours","replace the list by the steps from each element to the next"])
op("pair_sums","L","L","xs = [a + b for a, b in zip(xs, xs[1:])]",["compute the sums of neighbours","add each element to the next one"])
op("cap","L","L","xs = [min(x, {k}) for x in xs]",["limit each number to at most {k}","cap every value at {k}"],K)
op("floor","L","L","xs = [max(x, {k}) for x in xs]",["raise each number to at least {k}","replace the values below {k} by {k}"],K)
VR=["rotate the list a little","move some elements around the end"]
op("rot_l","L","L","xs = xs[1:] + xs[:1]",["move the first element to the end","rotate the list left by one"],None,"rot",VR)
op("rot_r","L","L","xs = xs[-1:] + xs[:-1]",["move the last element to the front","rotate the list right by one"],None,"rot",VR)
op("rot_l2","L","L","xs = xs[2:] + xs[:2]",["move the first two elements to the end","rotate the list left by two"],None,"rot",VR)
op("dbl_even","L","L","xs = [x * 2 if x % 2 == 0 else x for x in xs]",["double the even numbers and leave the others","multiply only the even values by 2"])
op("zero_neg","L","L","xs = [0 if x < 0 else x for x in xs]",["replace the negative numbers by 0","set every negative value to zero"])
op("add_idx","L","L","xs = [x + i for i, x in enumerate(xs)]",["add to each number its index","increase every value by its position, counting from 0"])
op("mul_idx","L","L","xs = [x * i for i, x in enumerate(xs)]",["multiply each number by its index","weight every value by its position, counting from 0"])
# ---- list -> int / bool / words
op("sum","L","I","n = sum(xs)",["compute the sum","add all the numbers up","find the total"])
VX=["find the extreme value","pick the most extreme number"]
op("max","L","I","n = max(xs, default=0)",["find the largest number, or 0 if there is none","take the maximum (0 for an empty list)"],None,"ext",VX)
op("min","L","I","n = min(xs, default=0)",["find the smallest number, or 0 if there is none","take the minimum (0 for an empty list)"],None,"ext",VX)
op("absmax","L","I","n = max(xs, key=abs, default=0)",["find the number farthest from zero, or 0 if there is none","take the value with the largest absolute value (0 for an empty list)"],None,"ext",VX)
op("count","L","I","n = len(xs)",["count the elements","find how many numbers there are"])
op("prod","L","I","n = 1\nfor x in xs:\n    n *= x",["compute the product","multiply all the numbers together"])
op("spread","L","I","n = max(xs) - min(xs) if xs else 0",["find the gap between the largest and smallest number, or 0 if there is none","compute the range of the values (0 for an empty list)"])
op("mean","L","I","n = sum(xs) // len(xs) if xs else 0",["compute the average rounded down, or 0 if there is none","find the integer mean (0 for an empty list)"])
op("count_neg","L","I","n = sum(1 for x in xs if x < 0)",["count the negative numbers","find how many values are below zero"])
op("count_even","L","I","n = sum(1 for x in xs if x % 2 == 0)",["count the even numbers","find how many values are even"])
VC=["count the numbers past the limit {k}"]
op("count_gt","L","I","n = sum(1 for x in xs if x > {k})",["count the numbers greater than {k}","find how many values are above {k}"],K,"cnt",VC)
op("count_lt","L","I","n = sum(1 for x in xs if x < {k})",["count the numbers less than {k}","find how many values are below {k}"],K,"cnt",VC)
VP=["pick one element of the list, or 0 if there is none","take a single element (0 for an empty list)"]
op("first","L","I","n = xs[0] if xs else 0",["take the first element, or 0 if there is none","return the element at the front (0 for an empty list)"],None,"pick",VP)
op("final","L","I","n = xs[-1] if xs else 0",["take the last element, or 0 if there is none","return the element at the end (0 for an empty list)"],None,"pick",VP)
op("middle","L","I","n = xs[len(xs) // 2] if xs else 0",["take the middle element, or 0 if there is none","return the element halfway through (0 for an empty list)"],None,"pick",VP)
op("second","L","I","xs = sorted(xs)\nn = xs[-2] if len(xs) > 1 else 0",["find the second largest number, or 0 if there is none","take the runner-up of the values (0 if there is none)"])
op("is_sorted","L","B","r = xs == sorted(xs)",["check whether the list is in ascending order","tell if the numbers never go down"])
op("has_dup","L","B","r = len(set(xs)) < len(xs)",["check whether any value repeats","tell if there are duplicates"])
op("all_pos","L","B","r = all(x > 0 for x in xs)",["check whether all the numbers are positive","tell if every value is above zero"])
op("to_words","L","W","words = [str(x) for x in xs]",["turn each number into a string","convert every value to text"])
# ---- int
op("i_add","I","I","n = n + {k}",["add {k} to the result","increase the number by {k}"],K,"iadd",["add a constant to the result"])
op("i_mul","I","I","n = n * {k}",["multiply the result by {k}","scale the number by {k}"],K5,"imul",["multiply the result by a constant"])
op("i_sq","I","I","n = n * n",["square the result","raise the number to the power of two"])
op("i_abs","I","I","n = abs(n)",["take the absolute value of the result","drop the sign of the number"])
op("i_mod","I","I","n = n % {k}",["take the result modulo {k}","find the remainder of the number after division by {k}"],range(3,10))
op("digit_sum","I","I","m = abs(n)\nn = 0\nwhile m > 0:\n    n += m % 10\n    m //= 10",["sum the digits of the number","add up the decimal digits"])
op("fact","I","I","def fact(m):\n    return 1 if m < 2 else m * fact(m - 1)\nn = fact(n)",["compute the factorial of the number","take the factorial recursively"])
op("fib","I","I","a, b = 0, 1\nfor i in range(n):\n    a, b = b, a + b\nn = a",["find the Fibonacci number with that index","compute that term of the Fibonacci sequence, counting from 0"])
op("divisors","I","L","xs = [d for d in range(1, n + 1) if n % d == 0]",["list the divisors of the number","collect every number that divides it"])
op("upto","I","L","xs = list(range(1, n + 1))",["list the numbers from 1 up to it","build the list that counts from 1 to the number"])
op("digits","I","L","xs = [int(d) for d in str(abs(n))]",["split the number into its digits","list the decimal digits"])
op("i_str","I","S","s = str(n)",["convert the number to a string","write the number as text"])
op("i_bin","I","S","s = bin(n)[2:]",["write the number in binary","convert the number to its binary digits"])
op("is_even","I","B","r = n % 2 == 0",["check whether the number is even","tell if it is divisible by two"])
op("is_prime","I","B","r = n > 1 and all(n % d for d in range(2, n))",["check whether the number is prime","tell if it has no divisor besides 1 and itself"])
# ---- string
VCASE=["change the case of the text"]
op("upper","S","S","s = s.upper()",["convert the text to upper case","make all the letters capital"],None,"case",VCASE)
op("lower","S","S","s = s.lower()",["convert the text to lower case","make all the letters small"],None,"case",VCASE)
op("swapcase","S","S","s = s.swapcase()",["swap the case of each letter","turn capital letters small and small letters capital"],None,"case",VCASE)
op("title","S","S","s = s.title()",["capitalize each word of the text","start every word with a capital letter"],None,"case",VCASE)
op("s_rev","S","S","s = s[::-1]",["reverse the text","write the string backwards"])
op("no_vowels","S","S","s = ''.join(c for c in s if c not in 'aeiouAEIOU')",["remove the vowels","drop every a, e, i, o and u"])
op("only_vowels","S","S","s = ''.join(c for c in s if c in 'aeiouAEIOU')",["keep only the vowels","drop everything that is not a vowel"])
VCL=["clean the text"]
op("no_space","S","S","s = s.replace(' ', '')",["remove the spaces","delete all blanks from the text"],None,"clean",VCL)
op("no_digits","S","S","s = ''.join(c for c in s if not c.isdigit())",["remove the digits","delete every digit from the text"],None,"clean",VCL)
op("letters","S","S","s = ''.join(c for c in s if c.isalpha())",["keep only the letters","delete everything that is not a letter"],None,"clean",VCL)
op("dbl_char","S","S","s = ''.join(c * 2 for c in s)",["repeat each character twice","double every character"])
op("s_sort","S","S","s = ''.join(sorted(s))",["sort the characters","put the characters in order"])
op("s_dedup","S","S","s = ''.join(dict.fromkeys(s))",["remove repeated characters","keep each character only once"])
op("s_take","S","S","s = s[:{k}]",["keep only the first {k} characters","cut the text to {k} characters"],K5,"stake",["cut the text to a few characters"])
op("s_last","S","S","s = s[-{k}:]",["keep only the last {k} characters","take {k} characters from the end of the text"],K5)
VSP=["replace the spaces by another character","put something else in place of each blank"]
op("spaces_dash","S","S","s = s.replace(' ', '-')",["replace the spaces by dashes","put a dash in place of each blank"],None,"spaces",VSP)
op("spaces_line","S","S","s = s.replace(' ', '_')",["replace the spaces by underscores","put an underscore in place of each blank"],None,"spaces",VSP)
op("spaces_dot","S","S","s = s.replace(' ', '.')",["replace the spaces by dots","put a dot in place of each blank"],None,"spaces",VSP)
op("spaces_plus","S","S","s = s.replace(' ', '+')",["replace the spaces by plus signs","put a plus in place of each blank"],None,"spaces",VSP)
VM=["put marks around the text","enclose the text in marks"]
op("wrap_round","S","S","s = '(' + s + ')'",["put round brackets around the text","enclose the text in parentheses"],None,"wrap",VM)
op("wrap_square","S","S","s = '[' + s + ']'",["put square brackets around the text","enclose the text in square brackets"],None,"wrap",VM)
op("wrap_angle","S","S","s = '<' + s + '>'",["put angle brackets around the text","enclose the text in < and >"],None,"wrap",VM)
op("wrap_star","S","S","s = '*' + s + '*'",["put a star at both ends of the text","enclose the text in stars"],None,"wrap",VM)
op("caesar","S","S","out = ''\nfor c in s:\n    if c.islower():\n        c = chr((ord(c) - 97 + {k}) % 26 + 97)\n    out += c\ns = out",["shift each small letter by {k} in the alphabet","move every lower case letter {k} places on"],range(1,4),"caesar",["shift each small letter by a constant in the alphabet"])
op("s_len","S","I","n = len(s)",["find the length of the text","count the characters"])
op("n_vowels","S","I","n = sum(1 for c in s if c in 'aeiouAEIOU')",["count the vowels","find how many vowels there are"])
op("n_upper","S","I","n = sum(1 for c in s if c.isupper())",["count the capital letters","find how many letters are upper case"])
op("n_digits","S","I","n = sum(1 for c in s if c.isdigit())",["count the digits","find how many characters are digits"])
op("is_pal","S","B","r = s == s[::-1]",["check whether the text is a palindrome","tell if the string reads the same backwards"])
op("split","S","W","words = s.split()",["split the text into words","break the string at the blanks"])
op("chars","S","W","words = list(s)",["list the characters","break the string into single characters"])
# ---- words
VW=["put the words in order"]
op("w_sort","W","W","words = sorted(words)",["sort the words alphabetically","put the words in dictionary order"],None,"wsort",VW)
op("w_len_sort","W","W","words = sorted(words, key=len)",["sort the words by length","put the words in order from short to long"],None,"wsort",VW)
op("w_desc","W","W","words = sorted(words, reverse=True)",["sort the words in reverse alphabetical order","put the words in order from z to a"],None,"wsort",VW)
op("w_last_sort","W","W","words = sorted(words, key=lambda w: w[-1:])",["sort the words by their last letter","order the words by how they end"],None,"wsort",VW)
op("w_rev","W","W","words = words[::-1]",["reverse the order of the words","list the words from last to first"])
op("w_upper","W","W","words = [w.upper() for w in words]",["convert each word to upper case","make every word capital"])
op("w_flip","W","W","words = [w[::-1] for w in words]",["reverse each word","write every word backwards"])
op("w_long","W","W","words = [w for w in words if len(w) > {k}]",["keep the words longer than {k} letters","drop the words of {k} letters or fewer"],range(2,6),"wlen",["keep only the long words"])
op("w_short","W","W","words = [w for w in words if len(w) <= {k}]",["keep the words of at most {k} letters","drop the words longer than {k} letters"],range(2,6))
op("w_cut","W","W","words = [w[:{k}] for w in words]",["cut each word to its first {k} letters","keep {k} letters of every word"],range(2,6),"wcut",["shorten each word to a few letters"])
op("w_init","W","W","words = [w[:1] for w in words]",["take the first letter of each word","replace every word by its initial"])
op("w_dedup","W","W","words = list(dict.fromkeys(words))",["remove repeated words","keep each word only once"])
VJ=["join the words into one string"]
op("j_space","W","S","s = ' '.join(words)",["join the words with spaces","glue the words together with blanks"],None,"join",VJ)
op("j_dash","W","S","s = '-'.join(words)",["join the words with dashes","put the words together with a dash between them"],None,"join",VJ)
op("j_none","W","S","s = ''.join(words)",["join the words without a separator","glue the words directly together"],None,"join",VJ)
op("j_comma","W","S","s = ','.join(words)",["join the words with commas","put the words together with a comma between them"],None,"join",VJ)
op("j_plus","W","S","s = '+'.join(words)",["join the words with plus signs","put the words together with a plus between them"],None,"join",VJ)
op("longest","W","S","s = max(words, key=len, default='')",["find the longest word, or an empty string if there is none","pick the word with the most letters ('' for an empty list)"])
op("w_lens","W","L","xs = [len(w) for w in words]",["find the length of each word","replace every word by its number of letters"])
op("w_count","W","I","n = len(words)",["count the words","find how many words there are"])


NAMES = list(PRIMITIVES)
