/** Steps of our machines are compared with those that xstate makes of the same events. */

import { describe, expect, it } from 'vitest'
import { type AnyStateMachine, assign, initialTransition, setup, transition } from 'xstate'
import fc from '../../../test/support/fast-check.ts'
import { absentProxy, nextProxy, type ProxyInput, proxyMachine } from './proxy.machine.ts'
import {
  absentResource,
  nextResource,
  type ResourceInput,
  resourceMachine,
} from './resource.machine.ts'
import {
  nextRollout,
  type RolloutInput,
  rolloutMachine,
  startedRollout,
} from './rollout.machine.ts'
import { type ActorSnapshot, createStep } from './step.ts'

const ref = { kind: 'HTTPRoute', namespace: 'shop', name: 'cart' }
const uid = fc.constantFrom('u', 'u', 'v')
const resourceVersion = fc.constantFrom('1', '2', '3')
const generation = fc.constantFrom(1, 2)
const seen = fc.record({
  sequence: fc.nat(99),
  time: fc.nat(9_999).map((ms) => new Date(ms).toISOString()),
})
const metadata = fc.constantFrom({}, { creationTimestamp: '2026-01-01T00:00:00Z' })

const resourceInput: fc.Arbitrary<ResourceInput> = fc.oneof(
  fc.record({
    type: fc.constant('APPLIED' as const),
    uid,
    resourceVersion,
    generation,
    object: metadata.map((written) => ({ apiVersion: 'v1', kind: ref.kind, metadata: written })),
    seen,
  }),
  fc.record({
    type: fc.constant('REFUSED' as const),
    uid,
    resourceVersion,
    refusal: generation.map((refused) => ({
      generation: refused,
      problems: [],
      targets: [],
      appliesTo: [],
    })),
    seen,
  }),
  fc.record({ type: fc.constant('DELETED' as const), uid }),
)

const text = fc.constantFrom(undefined, 'a', 'b')
const key = fc.constantFrom('route/a', 'route/b')
const proxyInput: fc.Arbitrary<ProxyInput> = fc.oneof(
  fc.record({
    type: fc.constant('CONNECTED' as const),
    gateway: text,
    address: text,
    stream: text,
    replica: text,
    version: text,
  }),
  fc.constant({ type: 'DISCONNECTED' as const }),
  fc.record(
    { type: fc.constant('ACKED' as const), sequence: fc.nat(9), refused: fc.array(key) },
    { requiredKeys: ['type', 'sequence'] },
  ),
  fc.record({
    type: fc.constant('REJECTED' as const),
    key,
    rejection: fc.record({ code: fc.constant('code'), message: fc.constantFrom('one', 'two') }),
  }),
)

const reason = fc.constantFrom('one', 'two')
const rolloutInput: fc.Arbitrary<RolloutInput> = fc.oneof(
  fc.record({
    type: fc.constant('STEPPED' as const),
    step: fc.record({
      number: fc.nat(3),
      proxies: fc.array(fc.constantFrom('p0', 'p1')),
      since: fc.constantFrom('2026-01-01T00:00:00Z'),
      position: fc.nat(9),
    }),
  }),
  fc.constant({ type: 'RESUMED' as const, since: '2026-01-01T00:01:00Z' }),
  fc.record({ type: fc.constant('PAUSED' as const), reason, author: text }),
  fc.record({ type: fc.constant('ROLLED_BACK' as const), reason, author: text }),
)

type AnySnapshot = ActorSnapshot<string, unknown>

/** Expects that both make the same states of the same events. */
function expectSameSteps<Event extends { readonly type: string }>(
  machine: AnyStateMachine,
  input: object,
  initial: AnySnapshot,
  next: (snapshot: AnySnapshot, event: Event) => AnySnapshot,
  event: fc.Arbitrary<Event>,
): void {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 30 }), (events) => {
      let [theirs] = initialTransition(machine, input)
      let ours = initial
      for (const one of [undefined, ...events]) {
        if (one !== undefined) {
          ;[theirs] = transition(machine, theirs, one)
          ours = next(ours, one)
        }
        expect(ours).toStrictEqual({ value: theirs.value, context: theirs.context })
      }
    }),
    { numRuns: 500 },
  )
}

describe('the step function of a machine', () => {
  it('makes the same steps as xstate for rollouts', () => {
    const next = nextRollout as (snapshot: AnySnapshot, event: RolloutInput) => AnySnapshot
    expectSameSteps(rolloutMachine, {}, startedRollout(0, '', []), next, rolloutInput)
  })

  it('makes the same steps as xstate for resources', () => {
    const next = nextResource as (snapshot: AnySnapshot, event: ResourceInput) => AnySnapshot
    expectSameSteps(resourceMachine, { ref }, absentResource(ref), next, resourceInput)
  })

  it('makes the same steps as xstate for proxies', () => {
    const next = nextProxy as (snapshot: AnySnapshot, event: ProxyInput) => AnySnapshot
    expectSameSteps(proxyMachine, { proxy: 'p' }, absentProxy('p'), next, proxyInput)
  })

  it('returns the same snapshot if the event causes no transition', () => {
    const absent = absentResource(ref)
    expect(nextResource(absent, { type: 'DELETED', uid: 'u' })).toBe(absent)
  })

  it('cannot be made of a machine with effects, other fields or unknown actions', () => {
    const machine = setup({ actions: { note: assign({}) } })
    const make = (state: object) =>
      createStep(machine.createMachine({ initial: 'a', states: { a: state } }))
    expect(() => make({ entry: 'note' })).toThrow('no step can be made of a machine with entry')
    expect(() => make({ on: { E: { reenter: true } } })).toThrow('a machine with reenter')
    expect(() => make({ on: { E: { actions: 'other' } } })).toThrow('other is not defined')
  })
})
