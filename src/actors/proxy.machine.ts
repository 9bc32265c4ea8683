/**
 * The actor of one proxy: what it has put in force (its watermark) and what it refuses.
 *
 * ```
 *   absent ── CONNECTED ──► connected ── ACKED ──► ready ── ACKED, REJECTED ──► ready
 *     ▲                        │                     │
 *     └──────── DISCONNECTED ──┴─────────────────────┘
 * ```
 */
import { assign, setup } from 'xstate'

export interface Rejection {
  readonly code: string
  readonly message: string
}

export interface ProxyState {
  readonly proxy: string
  /** The Gateway that it serves, `namespace/name`; undefined where it serves all. */
  readonly gateway: string | undefined
  readonly address: string | undefined
  /** The connection that counts; what was said on another one does not. */
  readonly stream: string | undefined
  /** The run of the replica that it is connected to; undefined where there is only one. */
  readonly replica: string | undefined
  readonly version: string | undefined
  /** Position of the log that is in force; -1 before the first acknowledgement. */
  readonly watermark: number
  readonly rejections: Readonly<Record<string, Rejection>>
}

export type ProxyInput =
  | {
      readonly type: 'CONNECTED'
      readonly gateway?: string
      readonly address?: string
      readonly stream?: string
      readonly replica?: string
      readonly version?: string
    }
  | { readonly type: 'DISCONNECTED' }
  | { readonly type: 'ACKED'; readonly sequence: number; readonly refused?: readonly string[] }
  | { readonly type: 'REJECTED'; readonly key: string; readonly rejection: Rejection }

function keepOnly(
  rejections: ProxyState['rejections'],
  keys: readonly string[],
): ProxyState['rejections'] {
  return Object.fromEntries(Object.entries(rejections).filter(([key]) => keys.includes(key)))
}

export const proxyMachine = setup({
  types: {
    context: {} as ProxyState,
    events: {} as ProxyInput,
    input: {} as { proxy: string },
  },
  actions: {
    connect: assign(({ event }) =>
      event.type === 'CONNECTED'
        ? {
            gateway: event.gateway,
            address: event.address,
            stream: event.stream,
            replica: event.replica,
            version: event.version,
            watermark: -1,
            rejections: {},
          }
        : {},
    ),
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
  context: ({ input }) => ({
    proxy: input.proxy,
    gateway: undefined,
    address: undefined,
    stream: undefined,
    replica: undefined,
    version: undefined,
    watermark: -1,
    rejections: {},
  }),
  initial: 'absent',
  states: {
    absent: { on: { CONNECTED: { target: 'connected', actions: 'connect' } } },
    connected: {
      on: {
        ACKED: { target: 'ready', actions: 'acknowledge' },
        REJECTED: { actions: 'reject' },
        CONNECTED: { actions: 'connect' },
        DISCONNECTED: 'absent',
      },
    },
    ready: {
      on: {
        ACKED: { actions: 'acknowledge' },
        REJECTED: { actions: 'reject' },
        CONNECTED: { target: 'connected', actions: 'connect' },
        DISCONNECTED: 'absent',
      },
    },
  },
})
