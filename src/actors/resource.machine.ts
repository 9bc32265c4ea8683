/**
 * The actor of one resource. It owns what is known of the resource: the last valid version, and a
 * later refused one. It is folded with xstate's pure transition functions: no invoke, no after, no
 * effect; facts that concern other resources are joined in `desired`.
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
import { assign, type SnapshotFrom, setup } from 'xstate'
import type { ObjectState, ObservedObject, Refusal } from '../desired/object-state.ts'
import type { Age, ObjectRef } from '../model/names.ts'
import { stepOf } from './pure-transition.ts'

/** When an object was observed, and at which position of the log. */
export interface ObservedAt {
  readonly sequence: number
  /** Milliseconds since the epoch. */
  readonly timeMs: number
}

export type ResourceInput =
  | {
      readonly type: 'APPLIED'
      readonly uid: string
      readonly resourceVersion: string
      readonly generation: number
      readonly object: ObservedObject
      readonly seen: ObservedAt
    }
  | {
      readonly type: 'REFUSED'
      readonly uid: string
      readonly resourceVersion: string
      readonly refusal: Refusal
      readonly seen: ObservedAt
    }
  | { readonly type: 'DELETED'; readonly uid: string }

/** Age per Gateway API: the creation time, else the order of first sight. */
function ageOf(object: ObservedObject, first: ObservedAt): Age {
  const created = Date.parse(object.metadata.creationTimestamp ?? '')
  if (!Number.isNaN(created)) return { created, order: 0 }
  return { created: first.timeMs, order: first.sequence }
}

interface Context {
  readonly ref: ObjectRef
  readonly firstSeen: ObservedAt | undefined
  readonly state: ObjectState | undefined
}

function applied(context: Context, event: ResourceInput & { type: 'APPLIED' }): Partial<Context> {
  const before = context.state?.uid === event.uid ? context.state : undefined
  const firstSeen = (before && context.firstSeen) ?? event.seen
  const sameGeneration = before?.object !== undefined && before.generation === event.generation
  return {
    firstSeen,
    state: {
      ref: context.ref,
      uid: event.uid,
      resourceVersion: event.resourceVersion,
      generation: event.generation,
      generationSequence: sameGeneration ? before.generationSequence : event.seen.sequence,
      age: ageOf(event.object, firstSeen),
      object: event.object,
      refused: undefined,
    },
  }
}

function refused(context: Context, event: ResourceInput & { type: 'REFUSED' }): Partial<Context> {
  const before = context.state?.uid === event.uid ? context.state : undefined
  const firstSeen = (before && context.firstSeen) ?? event.seen
  const unseen = {
    generation: 0,
    generationSequence: event.seen.sequence,
    age: { created: firstSeen.timeMs, order: firstSeen.sequence },
    object: undefined,
  }
  return {
    firstSeen,
    state: {
      ...unseen,
      ...before,
      ref: context.ref,
      uid: event.uid,
      resourceVersion: event.resourceVersion,
      refused: event.refusal,
    },
  }
}

const noResource: ObjectRef = { kind: '', namespace: '', name: '' }

const nothingKnown = (ref: ObjectRef): Context => ({ ref, firstSeen: undefined, state: undefined })

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
  // xstate makes an initial snapshot, without any input, with every actor. To throw there would be
  // caught, but dearly.
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
      on: {
        APPLIED: { guard: 'isNews', actions: 'takeApplied' },
        REFUSED: { guard: 'isNews', target: 'inForceButRefused', actions: 'takeRefused' },
        DELETED: { guard: 'isThisIncarnation', target: 'absent', actions: 'forget' },
      },
    },
    inForceButRefused: {
      on: {
        APPLIED: { guard: 'isNews', target: 'inForce', actions: 'takeApplied' },
        REFUSED: { guard: 'isNews', actions: 'takeRefused' },
        DELETED: { guard: 'isThisIncarnation', target: 'absent', actions: 'forget' },
      },
    },
    refused: {
      on: {
        APPLIED: { guard: 'isNews', target: 'inForce', actions: 'takeApplied' },
        REFUSED: { guard: 'isNews', actions: 'takeRefused' },
        DELETED: { guard: 'isThisIncarnation', target: 'absent', actions: 'forget' },
      },
    },
  },
})

/**
 * The actor of a resource of which nothing is known. Equal to what `initialTransition` gives, at a
 * twentieth of the cost: there is nothing to run on entering `absent`.
 */
export const absentResource = (ref: ObjectRef): SnapshotFrom<typeof resourceMachine> =>
  resourceMachine.resolveState({ value: 'absent', context: nothingKnown(ref) })

/** The next snapshot of a resource's actor; its only actions are assignments. */
export const nextResource = stepOf(resourceMachine)
