import { describe, expect, it } from 'vitest'
import { initialTransition, transition } from 'xstate'
import { absentResource, type ResourceInput, resourceMachine } from './resource.machine.ts'

describe('absentResource', () => {
  const ref = { kind: 'HTTPRoute', namespace: 'shop', name: 'cart' }
  const [initial] = initialTransition(resourceMachine, { ref })

  it('equals the initial state of the state machine', () => {
    const { value, context, status, children, historyValue } = absentResource(ref)
    expect({ value, context, status, children, historyValue }).toEqual({
      value: initial.value,
      context: initial.context,
      status: initial.status,
      children: initial.children,
      historyValue: initial.historyValue,
    })
  })

  it('makes the same transitions as the initial state of the state machine', () => {
    const seen = { sequence: 7, timeMs: 1_000 }
    const object = { apiVersion: 'v1', kind: ref.kind, metadata: { labels: { team: 'a' } } }
    const inputs: ResourceInput[] = [
      { type: 'APPLIED', uid: 'u', resourceVersion: '1', generation: 1, object, seen },
      { type: 'DELETED', uid: 'u' },
    ]
    for (const input of inputs) {
      const [ours] = transition(resourceMachine, absentResource(ref), input)
      const [theirs] = transition(resourceMachine, initial, input)
      expect({ value: ours.value, context: ours.context }).toEqual({
        value: theirs.value,
        context: theirs.context,
      })
    }
  })
})
