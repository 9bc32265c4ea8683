/**
 * The actor of one proxy: what it has put in force (its watermark) and what it rejects.
 *
 * ```
 *   absent ── CONNECTED ──► connected ── ACKED ──► ready ── ACKED, REJECTED ──► ready
 *     ▲                        │                     │
 *     └──────── DISCONNECTED ──┴─────────────────────┘
 * ```
 */
import { assign, setup } from 'xstate'
import { type ActorSnapshot, createStep } from './step.ts'

export interface RecordedRejection {
  readonly code: string
  readonly message: string
}

interface Connection {
  /** The Gateway that the proxy serves, `namespace/name`; undefined if it serves all. */
  readonly gateway: string | undefined
  readonly address: string | undefined
  /** Id of the current connection; acknowledgements on other connections are ignored. */
  readonly stream: string | undefined
  /** The run of the replica that the proxy is connected to; undefined if there is only one. */
  readonly replica: string | undefined
  readonly version: string | undefined
}

export interface ProxyState extends Connection {
  readonly proxy: string
  /** Log position of the configuration in force; -1 before the first acknowledgement. */
  readonly watermark: number
  readonly rejections: Readonly<Record<string, RecordedRejection>>
}

export type ProxyInput =
  | ({ readonly type: 'CONNECTED' } & Connection)
  | { readonly type: 'DISCONNECTED' }
  | { readonly type: 'ACKED'; readonly sequence: number; readonly refused?: readonly string[] }
  | { readonly type: 'REJECTED'; readonly key: string; readonly rejection: RecordedRejection }

function keepOnly(
  rejections: ProxyState['rejections'],
  keys: readonly string[],
): ProxyState['rejections'] {
  const entries = Object.entries(rejections)
  if (entries.length === 0) return rejections
  return Object.fromEntries(entries.filter(([key]) => keys.includes(key)))
}

const unconnected: Omit<ProxyState, 'proxy'> = {
  gateway: undefined,
  address: undefined,
  stream: undefined,
  replica: undefined,
  version: undefined,
  watermark: -1,
  rejections: {},
}

const whileConnected = {
  REJECTED: { actions: 'reject' },
  CONNECTED: { target: 'connected', actions: 'connect' },
  DISCONNECTED: 'absent',
} as const

/** @internal xstate's declarations do not compile with exactOptionalPropertyTypes, so ours do not name them. */
export const proxyMachine = setup({
  types: {
    context: {} as ProxyState,
    events: {} as ProxyInput,
    input: {} as { proxy: string },
  },
  actions: {
    connect: assign(({ event }) => {
      if (event.type !== 'CONNECTED') return {}
      const { type: _, ...connection } = event
      return { ...unconnected, ...connection }
    }),
    acknowledge: assign(({ context, event }) =>
      event.type === 'ACKED'
        ? {
            watermark: Math.max(context.watermark, event.sequence),
            rejections: keepOnly(context.rejections, event.refused ?? []),
          }
        : {},
    ),
    reject: assign(({ context, event }) =>
      event.type === 'REJECTED'
        ? { rejections: { ...context.rejections, [event.key]: event.rejection } }
        : {},
    ),
  },
}).createMachine({
  id: 'proxy',
  context: ({ input }) => ({ proxy: input.proxy, ...unconnected }),
  initial: 'absent',
  states: {
    absent: { on: { CONNECTED: whileConnected.CONNECTED } },
    connected: { on: { ...whileConnected, ACKED: { target: 'ready', actions: 'acknowledge' } } },
    ready: { on: { ...whileConnected, ACKED: { actions: 'acknowledge' } } },
  },
})

export type ProxySnapshot = ActorSnapshot<'absent' | 'connected' | 'ready', ProxyState>

/** The actor of an unknown proxy; equal to the initial state of the machine. */
export const absentProxy = (proxy: string): ProxySnapshot => ({
  value: 'absent',
  context: { proxy, ...unconnected },
})

/** The next snapshot of a proxy's actor. */
export const nextProxy = createStep<ProxySnapshot['value'], ProxyState, ProxyInput>(proxyMachine)
