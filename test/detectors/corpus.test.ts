import { describe, expect, it } from 'vitest'
import type { Builtin } from '../../src/engines/core/regex-builtins.ts'
import { makeCorpus, scoreDetectors } from './corpus.ts'

/** Least precision of detectors that cannot tell their numbers from others: they have no check digit, or one in ten fits. */
const ambiguous: Partial<Record<Builtin, number>> = {
  Ssn: 0.3,
  PhoneNumber: 0.25,
  CaSin: 0.5,
  CreditCard: 0.6,
  NlBsn: 0.6,
  InAadhaar: 0.6,
  UkNhs: 0.7,
}

describe('detectors on a corpus of made values and look-alikes', () => {
  it('find every value, and few others', () => {
    for (const { builtin, values, found, wrong } of scoreDetectors(makeCorpus(20261130, 60))) {
      expect(found / values, builtin).toBeGreaterThanOrEqual(builtin === 'Secret' ? 0.97 : 1)
      expect(found / (found + wrong), builtin).toBeGreaterThanOrEqual(ambiguous[builtin] ?? 0.9)
    }
  })
})
