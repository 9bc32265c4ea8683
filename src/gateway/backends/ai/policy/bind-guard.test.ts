import { expect, it } from 'vitest'
import type { Builtin } from '../../../../engines/core/regex-builtins.ts'
import { RegexGuard } from '../../../../engines/messages/mask/regex-guard.ts'
import { fitWindows } from './bind-guard.ts'

const fits = (...builtins: readonly Builtin[]): boolean => {
  const guard = new RegexGuard({ matches: [], builtins, action: 'Mask' })
  const refusal = { status: 403, message: '' }
  const fit = fitWindows([{ phase: 'Response', at: 0, guard, settings: { refusal } }])
  guard.dispose()
  return fit
}

it('checks no window for builtins that read text before a match, which another window may have had', () => {
  expect(fits('Email', 'CreditCard')).toBe(true)
  expect(fits('Secret')).toBe(false)
  expect(fits('PrivateKey')).toBe(false)
})
