/** The regex guard, which compiles all patterns and builtins of a guard to one mask of the core. */
import { compileMask, type Mask } from '../../../core/index.ts'
import type { Refusal, RegexConfig } from '../policy/config.ts'

/** Replacements for matches of builtins; matches of patterns are replaced by `<masked>`. */
const placeholders = {
  Ssn: '<SSN>',
  CreditCard: '<CREDIT_CARD>',
  PhoneNumber: '<PHONE_NUMBER>',
  Email: '<EMAIL_ADDRESS>',
  CaSin: '<CA_SIN>',
} as const

/** @throws Error if a pattern cannot be compiled; the control plane rejects such patterns. */
export function compileGuardMask({
  matches,
  builtins,
}: Pick<RegexConfig, 'matches' | 'builtins'>): Mask {
  const outcome = compileMask([
    ...matches.map((pattern) => ({ pattern, replacement: '<masked>' })),
    ...builtins.map((builtin) => ({ builtin, replacement: placeholders[builtin] })),
  ])
  if (!outcome.ok) throw new Error(`matches[${outcome.rule}]: ${outcome.message}`)
  return outcome.mask
}

export class RegexGuard {
  readonly type = 'regex'
  readonly refusal: Refusal
  readonly action: 'Mask' | 'Reject'
  readonly #config: RegexConfig
  #mask: Mask | undefined

  constructor(config: RegexConfig) {
    this.refusal = config.refusal
    this.action = config.action
    this.#config = config
    this.#mask = compileGuardMask(config)
  }

  /** The mask, which is compiled again if a request still needs it after `dispose`. */
  get mask(): Mask {
    this.#mask ??= compileGuardMask(this.#config)
    return this.#mask
  }

  dispose(): void {
    this.#mask?.dispose()
    this.#mask = undefined
  }
}
