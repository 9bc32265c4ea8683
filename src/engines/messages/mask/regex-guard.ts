/** The regex guard, which masks all patterns and builtins of a guard as one mask of the core. */
import {
  type Builtin,
  builtinReplacements,
  compileMask,
  type Mask,
  type MaskRule,
  patternReplacement,
} from '../../core/regex-mask.ts'

interface Searched {
  readonly matches: readonly string[]
  readonly builtins: readonly Builtin[]
}

interface RegexConfig extends Searched {
  readonly action: 'Mask' | 'Reject'
}

const rulesOf = ({ matches, builtins }: Searched): MaskRule[] => [
  ...matches.map((pattern) => ({ pattern, replacement: patternReplacement })),
  ...builtins.map((builtin) => ({ builtin, replacement: builtinReplacements[builtin] })),
]

/** @throws Error if a pattern cannot be compiled; the control plane rejects such patterns. */
export function compileGuardMask(searched: Searched): Mask {
  const outcome = compileMask(rulesOf(searched))
  if (!outcome.ok) throw new Error(`matches[${outcome.rule}]: ${outcome.message}`)
  return outcome.mask
}

export class RegexGuard {
  readonly type = 'regex'
  readonly action: 'Mask' | 'Reject'
  readonly #config: RegexConfig
  #mask: Mask | undefined

  constructor(config: RegexConfig) {
    this.action = config.action
    this.#config = config
  }

  get rules(): readonly MaskRule[] {
    return rulesOf(this.#config)
  }

  /** Names a rule: its builtin, or its position among the patterns. */
  nameOf(rule: number): string {
    const { matches, builtins } = this.#config
    return rule < matches.length ? `pattern ${rule}` : `builtin ${builtins[rule - matches.length]}`
  }

  /** The mask, for texts of parsed messages. It is compiled at the first use, also after `dispose`. */
  get mask(): Mask {
    this.#mask ??= compileGuardMask(this.#config)
    return this.#mask
  }

  dispose(): void {
    this.#mask?.dispose()
    this.#mask = undefined
  }
}
