/** The regex guard, which masks all patterns and builtins of a guard as one mask of the core. */
import { type Builtin, builtinReplacements } from '../../core/regex-builtins.ts'
import { compileMask, type Mask, type MaskRule, patternReplacement } from '../../core/regex-mask.ts'

interface Searched {
  readonly matches: readonly string[]
  readonly builtins: readonly Builtin[]
  readonly words?: readonly string[] | undefined
}

/** Matches texts with the form of a placeholder. Its bounded length limits what streams must hold back. */
export const placeholderPattern = '\\[[A-Z][A-Z_]{1,23}:[A-Za-z0-9_-]{38,380}\\]'
/** Prevents a guard from masking a part of a placeholder. */
const placeholderRule: MaskRule = { pattern: placeholderPattern, replacement: '' }

interface RegexConfig extends Searched {
  readonly action: 'Mask' | 'Reject' | 'Reversible'
  /** Further rules, which follow those of the configuration and are not named in findings. */
  readonly extraRules?: readonly MaskRule[]
}

/** Words in both forms in which their accents may be written. */
export const bothForms = (words: readonly string[]): string[] => [
  ...new Set(words.flatMap((word) => [word, word.normalize('NFC'), word.normalize('NFD')])),
]

export const wordsRule = (words: readonly string[]): MaskRule => ({
  words: bothForms(words),
  replacement: patternReplacement,
})

const hasWords = ({ words = [] }: Searched): boolean => words.length > 0

const rulesOf = (
  { matches, builtins, words = [] }: Searched,
  extraRules: readonly MaskRule[],
): MaskRule[] => [
  ...matches.map((pattern) => ({ pattern, replacement: patternReplacement })),
  ...builtins.map((builtin) => ({ builtin, replacement: builtinReplacements[builtin] })),
  ...(words.length > 0 ? [wordsRule(words)] : []),
  ...extraRules,
]

/** @throws Error if a pattern cannot be compiled; the control plane rejects such patterns. */
export function compileGuardMask(searched: Searched, extraRules: readonly MaskRule[] = []): Mask {
  const outcome = compileMask(rulesOf(searched, extraRules))
  if (!outcome.ok) {
    const field = outcome.rule < searched.matches.length ? `matches[${outcome.rule}]` : 'words'
    throw new Error(`${field}: ${outcome.message}`)
  }
  return outcome.mask
}

export class RegexGuard {
  readonly type = 'regex'
  readonly action: RegexConfig['action']
  readonly #config: RegexConfig
  #mask: Mask | undefined
  /** The rules of the configuration alone. */
  #ownMask: Mask | undefined

  constructor(config: RegexConfig) {
    this.action = config.action
    const { extraRules = [] } = config
    this.#config =
      config.action === 'Reversible'
        ? { ...config, extraRules: [placeholderRule, ...extraRules] }
        : config
  }

  get rules(): readonly MaskRule[] {
    return rulesOf(this.#config, this.#config.extraRules ?? [])
  }

  /** Whether text far before a match decides whether it is one, as for tokens that look random. */
  get readsBefore(): boolean {
    return this.#config.builtins.includes('Secret')
  }

  /** Names a rule: its builtin, `words`, or its position among the patterns. */
  nameOf(rule: number): string {
    const { matches, builtins } = this.#config
    const builtin = builtins[rule - matches.length]
    if (hasWords(this.#config) && rule === matches.length + builtins.length) return 'words'
    return builtin === undefined ? `pattern ${rule}` : `builtin ${builtin}`
  }

  /** Whether a rule is one of `extraRules`, or the rule for placeholders. */
  isExtraRule(rule: number): boolean {
    const { matches, builtins } = this.#config
    return rule >= matches.length + builtins.length + (hasWords(this.#config) ? 1 : 0)
  }

  /** The mask, for texts of parsed messages. It is compiled at the first use, also after `dispose`. */
  get mask(): Mask {
    this.#mask ??= compileGuardMask(this.#config, this.#config.extraRules)
    return this.#mask
  }

  /** Whether a rule of the configuration finds something in what looks like a placeholder. */
  findsIn(placeholder: string): boolean {
    this.#ownMask ??= compileGuardMask(this.#config)
    return this.#ownMask.isMatch(placeholder)
  }

  dispose(): void {
    this.#mask?.dispose()
    this.#mask = undefined
    this.#ownMask?.dispose()
    this.#ownMask = undefined
  }
}
