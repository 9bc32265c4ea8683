/** What one HTTP request of an MCP client is meant to be, and what became of it. */
import type { Message } from '../http1-reader.ts'
import type { McpClientPlan, McpServerPlan, McpStep } from './plan.ts'

/** A JSON-RPC message. */
export interface Rpc {
  readonly id?: string | number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

export type RequestKind =
  | McpStep['kind']
  | 'initialize'
  | 'discover'
  | 'notice'
  | 'answer'
  | 'resumed'
  | 'delete'
  | 'deleted'

/** A client and its session: everything that either side sends carries its tag. */
export interface McpParty {
  readonly tag: string
  readonly plan: McpClientPlan
}

/** Tags of clients and their requests, as `~m0~` and `~m0~q3`. */
export const partyTag = (client: number): string => `~m${client}~`
export const requestTag = (party: string, number: number): string => `${party}q${number}`

export const partiesIn = (text: string): ReadonlySet<string> => new Set(text.match(/~m\d+~/g))
export const requestsIn = (text: string): ReadonlySet<string> => new Set(text.match(/~m\d+~q\d+/g))

/** Ids of sessions at servers, which no client may see. */
export const serverSessionPattern = /sid-t\d+-\d+/

export class McpRequest {
  readonly tag: string
  /** Its id of JSON-RPC, which other clients use as well. */
  readonly id: number
  readonly party: McpParty
  readonly kind: RequestKind
  /** Set for calls. */
  readonly step: McpStep | undefined
  /** Requests that carry the call to a server, and how many of them it has refused as ones of no session. */
  arrivals = 0
  refused = 0
  /** Whether the server has done with the call what it was meant to do. */
  isServed = false
  /** Whether it asks for the second page of a list. */
  isRest = false
  /** Why it needs no response. */
  excuse: string | undefined
  /** Whether the worker has died since it began. */
  mayLackRecord = false
  head: Message | undefined
  /** The JSON-RPC messages that the client got in the response. */
  readonly messages: Rpc[] = []
  isOver = false
  /** When the client began it, and when something of the response arrived last, in milliseconds. */
  begunAt = 0
  lastAt = 0
  /** Longest silence of a response that is a stream, in milliseconds. */
  silenceMs = 0

  constructor(
    party: McpParty,
    number: number,
    kind: RequestKind,
    step: McpStep | undefined = undefined,
  ) {
    this.party = party
    this.id = number
    this.tag = requestTag(party.tag, number)
    this.kind = kind
    this.step = step
  }

  get server(): McpServerPlan | undefined {
    return this.step?.server
  }

  /** The responses of JSON-RPC to it. */
  get responses(): readonly Rpc[] {
    return this.messages.filter(({ id, method }) => id === this.id && method === undefined)
  }
}

/** A request by its tag in any text. */
export const requestIn = (
  requests: ReadonlyMap<string, McpRequest>,
  text: string,
): McpRequest | undefined => {
  const [tag = ''] = requestsIn(text)
  return requests.get(tag)
}
