/** Features of texts that embeddings represent poorly. Texts that differ in one of them are not similar. */
import { hash } from 'node:crypto'

/** Letters and digits of the Latin script, and characters that belong to no script. */
const latin = /^[\p{Script=Latin}\p{Script=Common}\p{Script=Inherited}]*$/u

/** Words that negate a sentence. */
const negations = new Set(
  [
    // English
    'no not never none nor neither nothing nobody without cannot except',
    // German
    'nicht nichts kein keine keinen keiner keines keinem nie niemals ohne außer',
    // French
    'ne pas jamais sans aucun aucune ni sauf',
    // Spanish and Portuguese
    'nunca sin ningún ninguna ninguno ni tampoco não nem sem nenhum nenhuma exceto excepto',
    // Italian
    'non mai senza nessun nessuno nessuna né tranne',
    // Dutch
    'niet geen nooit zonder behalve',
    // Polish and Czech
    'nie bez nigdy ne není nikdy',
    // Swedish, Danish and Norwegian
    'inte ej aldrig utan ikke aldri uten uden',
  ].flatMap((words) => words.split(' ')),
)

/** `n't` in English, also without the apostrophe. */
const shortNot =
  /n['\u2019]t$|^(?:is|are|was|were|do|does|did|has|have|had|ca|could|wo|would|should|must|need|ai)nt$/

const isNegation = (word: string): boolean => negations.has(word) || shortNot.test(word)

/** Words for numbers. A word that several languages have is listed once. */
const numberWords = new Set(
  [
    'zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen',
    'seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million',
    'billion first second third fourth fifth half quarter once twice double triple dozen',
    'null eins ein eine zwei drei vier fünf sechs sieben acht neun zehn elf zwölf zwanzig dreißig vierzig fünfzig',
    'sechzig siebzig achtzig neunzig hundert tausend erste zweite dritte halb doppelt einmal zweimal',
    'un une deux trois quatre cinq sept huit neuf dix onze douze vingt trente quarante cinquante soixante cent',
    'mille premier deuxième troisième demi fois',
    'uno una dos tres cuatro cinco seis siete ocho nueve diez veinte treinta cuarenta cincuenta ciento mil primero',
    'um uma dois duas três quatro sete oito nove dez vinte trinta quarenta cinquenta cem',
    'due tre quattro cinque sei sette otto nove dieci venti trenta quaranta cinquanta cento',
    'een twee drie vijf zes zeven acht negen tien twintig honderd duizend',
  ].flatMap((words) => words.split(' ')),
)

/** Roman numerals of two letters and more. A single letter is usually a word or a name. */
const roman = /^[IVXLCDM]{2,}$/

const digest = (words: readonly string[]): string =>
  hash('sha256', words.join(' '), 'base64url').slice(0, 16)

/** Numbers with their separators and the unit after them, operators, dashes and currency signs. */
const figures = /\p{N}+(?:[.,'\u2019\u00a0\u202f]\p{N}+)*(?:\s?\p{L}+)?|[\p{Sm}\p{Sc}\p{Pd}%*/^]/gu

/** Returns undefined for texts of other scripts than Latin, in which negations and word order are not known. */
export function textFeatures(text: string) {
  if (!latin.test(text)) return undefined
  // Some systems send accents as characters; the lists have letters with accents.
  const composed = text.normalize('NFC').replaceAll('\u02bc', "'")
  const written = composed.match(/[\p{L}\p{M}\p{N}'\u2019]+/gu) ?? []
  const words = written.map((word) => word.toLowerCase())
  const named = written.filter((word) => roman.test(word) || numberWords.has(word.toLowerCase()))
  return {
    figures: [...(composed.match(figures) ?? []), ...named].map((figure) => figure.toLowerCase()),
    negations: words.filter(isNegation).length,
    words: digest(words.toSorted()),
    sequence: digest(words),
  }
}
