/**
 * The actor of one resource. It has the last valid version, and a later refused one. It is folded with a
 * pure step function that is made of the machine: no invoke, no after, no effect. `desired` joins resources.
 *
 * ```
 *              APPLIED                APPLIED (newer)
 *   absent ───────────────► inForce ◄─────────────────┐
 *     │  ▲                   │  │ └───────────────────┘
 *     │  └───── DELETED ─────┘  │ REFUSED
 *     │  ▲                      ▼        APPLIED
 *     │  └─── DELETED ── inForceButRefused ────────► inForce
 *     └─ REFUSED ─► refused ── APPLIED ─► inForce
 * ```
 */
import { assign, setup } from 'xstate'
import type { SluiceEvent } from '../../../events/index.ts'
import type { Age, ObjectRef } from '../../ground/model/names.ts'
import type { ObjectState, ObservedObject, RefusedVersion } from '../desired/object-state.ts'
import { shareContent } from '../desired/same-content.ts'
import { type ActorSnapshot, createStep } from './step.ts'

/** When an object was first observed, and at which position of the log. */
interface ObservedAt {
  readonly sequence: number
  /** Milliseconds since the epoch. */
  readonly timeMs: number
}

/** The time of an event (RFC 3339) and its position in the log. */
interface EventPlace {
  readonly sequence: number
  readonly time: string
}

export type ResourceInput =
  | {
      readonly type: 'APPLIED'
      readonly uid: string
      readonly resourceVersion: string
      readonly generation: number
      readonly object: ObservedObject
      readonly seen: EventPlace
    }
  | {
      readonly type: 'REFUSED'
      readonly uid: string
      readonly resourceVersion: string
      readonly refusal: RefusedVersion
      readonly seen: EventPlace
    }
  | { readonly type: 'DELETED'; readonly uid: string }

/**
 * Age as in the Gateway API: from the creation time, or from the first observation if there is none. A version
 * with the creation time of the one before has the same age.
 */
function ageOf(object: ObservedObject, first: ObservedAt, known: ObjectState | undefined): Age {
  const { creationTimestamp } = object.metadata
  const before = known?.object?.metadata
  if (
    known !== undefined &&
    before !== undefined &&
    before.creationTimestamp === creationTimestamp
  ) {
    return known.age
  }
  const created = creationTimestamp === undefined ? Number.NaN : Date.parse(creationTimestamp)
  if (!Number.isNaN(created)) return { created, order: 0 }
  return { created: first.timeMs, order: first.sequence }
}

interface Context {
  readonly ref: ObjectRef
  readonly firstSeen: ObservedAt | undefined
  readonly state: ObjectState | undefined
}

type Observation = Exclude<ResourceInput, { type: 'DELETED' }>

/** The state of this incarnation before an event, and when the incarnation was first observed. */
function before({ state, firstSeen }: Context, event: Observation) {
  const known = state?.uid === event.uid ? state : undefined
  const { sequence, time } = event.seen
  const first = (known && firstSeen) ?? { sequence, timeMs: Date.parse(time) }
  return { known, firstSeen: first }
}

function applied(context: Context, event: Observation & { type: 'APPLIED' }): Partial<Context> {
  const { known, firstSeen } = before(context, event)
  const sameGeneration = known?.object !== undefined && known.generation === event.generation
  return {
    firstSeen,
    state: {
      ref: context.ref,
      uid: event.uid,
      resourceVersion: event.resourceVersion,
      generation: event.generation,
      generationSequence: sameGeneration ? known.generationSequence : event.seen.sequence,
      age: ageOf(event.object, firstSeen, known),
      object: shareContent(known?.object, event.object),
      refused: undefined,
    },
  }
}

function refused(context: Context, event: Observation & { type: 'REFUSED' }): Partial<Context> {
  const { known, firstSeen } = before(context, event)
  return {
    firstSeen,
    state: {
      generation: 0,
      generationSequence: event.seen.sequence,
      age: { created: firstSeen.timeMs, order: firstSeen.sequence },
      object: undefined,
      ...known,
      ref: context.ref,
      uid: event.uid,
      resourceVersion: event.resourceVersion,
      refused: event.refusal,
    },
  }
}

const noResource: ObjectRef = { kind: '', namespace: '', name: '' }

const nothingKnown = (ref: ObjectRef): Context => ({ ref, firstSeen: undefined, state: undefined })

const apply = { target: 'inForce', guard: 'isNews', actions: 'takeApplied' } as const
const refuse = { guard: 'isNews', actions: 'takeRefused' } as const
const remove = { target: 'absent', guard: 'isThisIncarnation', actions: 'forget' } as const

/** @internal */
export const resourceMachine = setup({
  types: {
    context: {} as Context,
    events: {} as ResourceInput,
    input: {} as { ref: ObjectRef } | undefined,
  },
  guards: {
    isNews: ({ context, event }) =>
      event.type === 'DELETED' ||
      event.uid !== context.state?.uid ||
      event.resourceVersion !== context.state.resourceVersion,
    isThisIncarnation: ({ context, event }) => event.uid === context.state?.uid,
  },
  actions: {
    takeApplied: assign(({ context, event }) =>
      event.type === 'APPLIED' ? applied(context, event) : {},
    ),
    takeRefused: assign(({ context, event }) =>
      event.type === 'REFUSED' ? refused(context, event) : {},
    ),
    forget: assign({ state: undefined, firstSeen: undefined }),
  },
}).createMachine({
  id: 'resource',
  // xstate creates an initial snapshot without input for each actor.
  context: ({ input }) => nothingKnown(input?.ref ?? noResource),
  initial: 'absent',
  states: {
    absent: {
      on: {
        APPLIED: { target: 'inForce', actions: 'takeApplied' },
        REFUSED: { target: 'refused', actions: 'takeRefused' },
      },
    },
    inForce: {
      on: { APPLIED: apply, REFUSED: { ...refuse, target: 'inForceButRefused' }, DELETED: remove },
    },
    inForceButRefused: { on: { APPLIED: apply, REFUSED: refuse, DELETED: remove } },
    refused: { on: { APPLIED: apply, REFUSED: refuse, DELETED: remove } },
  },
})

export type ResourceSnapshot = ActorSnapshot<
  'absent' | 'inForce' | 'inForceButRefused' | 'refused',
  Context
>

/** The actor of an unknown resource; equal to the initial state of the machine. */
export const absentResource = (ref: ObjectRef): ResourceSnapshot => ({
  value: 'absent',
  context: nothingKnown(ref),
})

/** The next snapshot of a resource's actor. */
export const nextResource = createStep<ResourceSnapshot['value'], Context, ResourceInput>(
  resourceMachine,
)

/** The input that an event is for the actor of its resource; undefined if it is about something else. */
export function toResourceInput(event: SluiceEvent, sequence: number): ResourceInput | undefined {
  const seen = { sequence, time: event.time }
  switch (event.type) {
    case 'dev.sluice.resource.applied.v1': {
      const { uid, resourceVersion, generation, object } = event.data
      const observed = object as ObservedObject
      return { type: 'APPLIED', uid, resourceVersion, generation, object: observed, seen }
    }
    case 'dev.sluice.resource.refused.v1': {
      const { uid, resourceVersion, generation, problems, targets, appliesTo } = event.data
      const refusal = { generation, problems, targets: targets ?? [], appliesTo: appliesTo ?? [] }
      return { type: 'REFUSED', uid, resourceVersion, refusal, seen }
    }
    case 'dev.sluice.resource.deleted.v1':
      return { type: 'DELETED', uid: event.data.uid }
    default:
      return undefined
  }
}

/** A version that takes effect now: proxies have it in force once they have acknowledged this position. */
export function takingEffect(version: ResourceSnapshot, position: number): ResourceSnapshot {
  const { state } = version.context
  if (state === undefined) return version
  const now = { ...state, generationSequence: position }
  return { ...version, context: { ...version.context, state: now } }
}
