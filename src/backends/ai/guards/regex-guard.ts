/** The regex guard: one mask of the core for all patterns and builtins of a guard. */
import { compileMask, type Mask, type MaskRule } from '../../../core/index.ts'

export interface RegexGuardConfig {
  readonly matches: readonly string[]
  readonly builtins: readonly ('Ssn' | 'CreditCard' | 'PhoneNumber' | 'Email' | 'CaSin')[]
  readonly action: 'Mask' | 'Reject'
}

/** What a match of a pattern becomes. */
const masked = '<masked>'

const placeholders = {
  Ssn: '<SSN>',
  CreditCard: '<CREDIT_CARD>',
  PhoneNumber: '<PHONE_NUMBER>',
  Email: '<EMAIL_ADDRESS>',
  CaSin: '<CA_SIN>',
} as const

export function rulesOf({ matches, builtins }: RegexGuardConfig): MaskRule[] {
  return [
    ...matches.map((pattern) => ({ pattern, replacement: masked })),
    ...builtins.map((builtin) => ({ builtin, replacement: placeholders[builtin] })),
  ]
}

/** @throws Error where a pattern cannot be compiled, which the control plane has ruled out. */
export function compileGuardMask(config: RegexGuardConfig): Mask {
  const outcome = compileMask(rulesOf(config))
  if (!outcome.ok) throw new Error(`matches[${outcome.rule}]: ${outcome.message}`)
  return outcome.mask
}
