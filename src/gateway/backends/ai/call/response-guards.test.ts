import { describe, expect, it } from 'vitest'
import { completions } from '../../../../engines/messages/formats/completions/index.ts'
import type { ModelCall } from './model-call.ts'
import { holdsResponse } from './response-guards.ts'

const callWith = (core: 'Completions' | undefined) =>
  ({
    policy: {
      responseGuards: [{ guard: { type: 'regex' }, settings: {} }],
      responseChain: {},
      guardsResponses: true,
    },
    outgoing: { format: { ...completions, core } },
  }) as unknown as ModelCall

describe('a guarded stream', () => {
  it('is held if the core does not know its format', () => {
    expect(holdsResponse(callWith('Completions'))).toBe(false)
    expect(holdsResponse(callWith(undefined))).toBe(true)
  })
})
