// Generated from assembly/ by npm run generate; do not edit.
import * as abi from './abi.ts'

/** What is wrong with a pattern, by the code of the ABI. */
export const patternMessages: ReadonlyMap<number, string> = new Map<number, string>([
  [abi.REGEX_PATTERN_TOO_LONG, 'the pattern is longer than 8192 bytes'],
  [abi.REGEX_PROGRAM_TOO_LARGE, 'the pattern is too large once its repetitions are written out'],
  [abi.REGEX_NESTED_TOO_DEEP, 'groups nest deeper than 200'],
  [abi.REGEX_NO_SPANS, 'a pattern that was compiled with REGEX_MATCH_ONLY gives no spans'],
  [abi.REGEX_TOO_MUCH_WORK, 'finding all matches reads the text too many times'],
  [abi.REGEX_BAD_UTF8, 'the pattern is not valid UTF-8'],
  [abi.REGEX_UNBALANCED_PAREN, 'a parenthesis has no partner'],
  [abi.REGEX_UNCLOSED_CLASS, 'a character class has no closing bracket'],
  [abi.REGEX_BAD_RANGE, 'a range in a character class runs backwards or ends in a class'],
  [abi.REGEX_BAD_ESCAPE, 'unknown escape'],
  [abi.REGEX_TRAILING_BACKSLASH, 'nothing follows the backslash'],
  [abi.REGEX_NOTHING_TO_REPEAT, 'a quantifier has nothing to repeat'],
  [abi.REGEX_NESTED_QUANTIFIER, 'a quantifier follows a quantifier'],
  [abi.REGEX_BAD_REPEAT, 'a repetition count is above 1000, or the lower one exceeds the upper'],
  [abi.REGEX_BAD_GROUP, 'unknown group syntax'],
  [abi.REGEX_UNKNOWN_CLASS, 'unknown character class name'],
  [abi.REGEX_LOOKAROUND, 'look-around is not supported: it cannot be matched in linear time'],
  [abi.REGEX_BACKREFERENCE, 'back-references are not supported: no linear-time match exists'],
  [abi.REGEX_ATOMIC, 'atomic groups and possessive quantifiers are not supported'],
  [abi.WORDS_TOO_MANY, 'a list has more than 10,000 words'],
  [abi.WORDS_TOO_LARGE, 'a list of words is longer than 262,144 bytes'],
  [abi.WORDS_LONG_WORD, 'a word is longer than 256 bytes'],
  [abi.WORDS_BAD_UTF8, 'a word is not valid UTF-8'],
])
