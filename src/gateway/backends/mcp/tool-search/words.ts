/** Words of texts about tools, in the form in which they are compared. */

/** Maximum length of a text that is read, and maximum number of words of it. */
const maxText = 4_096
const maxWords = 512
const maxWord = 40

/** Words that most texts have, which say nothing about a tool. */
const common = new Set(
  'a about all an and any are as at be by can do for from get given has have how i in into is it its me my new of on one or our that the their them there these this to use used using want was what when where which will with you your'.split(
    ' ',
  ),
)

/** Splits `createUserAccount`, `create_user-account` and sentences, also at the end of acronyms (`HTTPServer`). */
const boundary = /[^\p{L}\p{N}]+|(?<=[\p{Ll}\p{N}])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/u

/** Returns the words of a text in order, without common ones. Takes linear time. */
export function wordsOf(text: string): readonly string[] {
  const found: string[] = []
  for (const part of text.slice(0, maxText).split(boundary)) {
    if (found.length >= maxWords) break
    const word = part.toLowerCase()
    if (word === '' || word.length > maxWord || common.has(word)) continue
    found.push(stemOf(word))
  }
  return found
}

/** Endings, the longest first, and what replaces them. */
const endings: readonly (readonly [ending: string, other: string])[] = [
  ['ations', ''],
  ['ation', ''],
  ['ings', ''],
  ['ions', ''],
  ['ing', ''],
  ['ies', 'y'],
  ['ion', ''],
  ['ers', ''],
  ['ed', ''],
  ['es', ''],
  ['er', ''],
  ['s', ''],
  ['e', ''],
]
/** Letters that a word keeps before an ending. */
const minStem = 3

/** Returns the same text for most forms of an English word, such as `create`, `creates` and `creating`. */
function stemOf(word: string): string {
  for (const [ending, other] of endings) {
    if (!word.endsWith(ending) || word.length - ending.length < minStem) continue
    if (ending === 's' && word.endsWith('ss')) break
    const stem = word.slice(0, -ending.length) + other
    const last = stem.at(-1)
    // The consonant is doubled before some endings: `stopping`.
    const isDoubled = last === stem.at(-2) && last !== 'l' && last !== 's' && stem.length > minStem
    return isDoubled ? stem.slice(0, -1) : stem
  }
  return word
}
