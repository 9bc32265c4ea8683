/**
 * Random patterns and texts on which our syntax and JavaScript's (flag u) mean the same. Left out:
 * \s (JavaScript's has Unicode spaces and \v), carriage returns (JavaScript's dot excludes them and its
 * multi-line anchors see them), \b with flag i where ſ and the Kelvin sign occur (JavaScript counts them
 * as word characters then), and a repetition of something that may match nothing and itself holds a
 * repetition (JavaScript can take exponential time there; cases/preference.json has some).
 */
export interface RandomPattern {
  readonly source: string
  readonly flags: { readonly i: boolean; readonly m: boolean; readonly s: boolean }
  readonly alphabet: readonly string[]
}

interface Piece {
  readonly source: string
  readonly isNullable: boolean
  readonly repeats: boolean
}

const alphabets: readonly (readonly string[])[] = [
  ['a', 'b'],
  ['a', 'b', 'c', ' ', '\n'],
  ['a', 'é', '☃', '😀', 'z'],
  ['0', '1', '-', ' ', '.'],
  ['a', 'B', 'A', 'b', '_', '-'],
  ['s', 'S', 'k', 'K', 'ſ', '\u212a', '1'],
  ['@', 'a', '.', '-'],
]
const foldingAlphabet = alphabets[5]

/** Numbers that one seed always gives in one order. */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b1) >>> 0 || 1
  }

  below(limit: number): number {
    this.#state ^= this.#state << 13
    this.#state ^= this.#state >>> 17
    this.#state ^= this.#state << 5
    return (this.#state >>> 0) % limit
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)]
    if (item === undefined) throw new Error('nothing to pick from')
    return item
  }
}

const literal = (character: string) => {
  if (character === '\n') return '\\n'
  return character === '-' || character === '@' || character === '.'
    ? `\\x${character.charCodeAt(0).toString(16)}`
    : character
}

/** What RE2 and we have, and JavaScript has not, or otherwise. */
const linearClasses = [
  '\\s',
  '\\S',
  '[[:alpha:]]',
  '[[:^digit:]]',
  '[\\s@]',
  '\\pL',
  '\\PL',
  '\\Qa.\\E',
]
const linearAssertions = ['\\A', '\\z']

class Generator {
  readonly #random: Random
  readonly #alphabet: readonly string[]
  readonly #assertions: readonly string[]
  readonly #classes: readonly string[]
  /** A round that may match nothing: JavaScript and we refuse an empty one, RE2 takes it. */
  readonly #repeatsNullable: boolean

  constructor(random: Random, alphabet: readonly string[], isLinear: boolean) {
    this.#random = random
    this.#alphabet = alphabet
    const own = alphabet === foldingAlphabet ? ['^', '$'] : ['\\b', '\\B', '^', '$']
    this.#assertions = isLinear ? [...own, ...linearAssertions] : own
    this.#repeatsNullable = !isLinear
    this.#classes = ['\\d', '\\w', '\\D', '\\W', ...(isLinear ? linearClasses : [])]
  }

  #character = () => literal(this.#random.pick(this.#alphabet))

  #class(): string {
    const random = this.#random
    if (random.below(2) === 0) {
      return `[${random.below(3) === 0 ? '^' : ''}${this.#character()}${random.below(2) ? this.#character() : ''}]`
    }
    const ends = [random.pick(this.#alphabet), random.pick(this.#alphabet)]
    ends.sort((a, b) => (a.codePointAt(0) ?? 0) - (b.codePointAt(0) ?? 0))
    return `[${ends.map(literal).join('-')}]`
  }

  #leaf(): Piece {
    const kind = this.#random.below(10)
    if (kind === 0) {
      return { source: this.#random.pick(this.#assertions), isNullable: true, repeats: false }
    }
    const sources = ['.', this.#random.pick(this.#classes), this.#class()]
    return { source: sources[kind - 1] ?? this.#character(), isNullable: false, repeats: false }
  }

  #atom(depth: number): Piece {
    if (depth === 0 || this.#random.below(10) < 7) return this.#leaf()
    const inner = this.alternatives(depth - 1)
    return { ...inner, source: `${this.#random.pick(['(', '(?:'])}${inner.source})` }
  }

  #repetition(depth: number): Piece {
    const atom = this.#atom(depth)
    const isAssertion = this.#assertions.includes(atom.source)
    const isTaken = !atom.isNullable || (this.#repeatsNullable && !atom.repeats)
    if (isAssertion || !isTaken || this.#random.below(9) > 3) return atom
    const quantifier = this.#random.pick([
      '*',
      '+',
      '?',
      '*',
      '+',
      '?',
      '{2}',
      '{0,2}',
      '{1,3}',
      '{2,}',
      '{0}',
      '{0,1}',
    ])
    const isNullable = atom.isNullable || /^[*?]|^\{0/.test(quantifier)
    const laziness = this.#random.below(3) === 0 ? '?' : ''
    return { source: atom.source + quantifier + laziness, isNullable, repeats: true }
  }

  #sequence(depth: number): Piece {
    const length = this.#random.below(4) + (depth === 3 ? 1 : 0)
    const pieces = Array.from({ length }, () => this.#repetition(depth))
    return {
      source: pieces.map(({ source }) => source).join(''),
      isNullable: pieces.every(({ isNullable }) => isNullable),
      repeats: pieces.some(({ repeats }) => repeats),
    }
  }

  alternatives(depth: number): Piece {
    const length = this.#random.below(3) === 0 ? this.#random.below(3) + 1 : 1
    const pieces = Array.from({ length }, () => this.#sequence(depth))
    return {
      source: pieces.map(({ source }) => source).join('|'),
      isNullable: pieces.some(({ isNullable }) => isNullable),
      repeats: pieces.some(({ repeats }) => repeats),
    }
  }
}

/** For comparisons with RE2 (`isLinear`), also syntax that JavaScript does not have. */
export function randomPattern(random: Random, isLinear = false): RandomPattern {
  const alphabet = random.pick(alphabets)
  const { source } = new Generator(random, alphabet, isLinear).alternatives(3)
  // With i, JavaScript folds \W and \D of non-ASCII text in ways of its own.
  const i = random.below(3) === 0 && !alphabet.includes('é')
  return { source, alphabet, flags: { i, m: random.below(3) === 0, s: random.below(3) === 0 } }
}

export function randomText(random: Random, alphabet: readonly string[], limit: number): string {
  return Array.from({ length: random.below(limit) }, () => random.pick(alphabet)).join('')
}
