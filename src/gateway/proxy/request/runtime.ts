import type { CallListener, CallRequest, OpenCall } from '../../../engines/http/contracts/calls.ts'
import type { ConnectOnce } from '../../../engines/http/upstream/connection-attempt.ts'
import type { ModelCatalog } from '../../../engines/messages/catalog/catalog.ts'
import type { Callouts, Exchange, Verdict } from '../../../ground/exchange/exchange.ts'
import type { ReportList } from '../../../ground/model/mcp-lists.ts'
import type { Step } from '../../policies/define.ts'
import type { Circuits } from '../upstream/circuits.ts'
import type { BackendKinds } from './backend-kind.ts'
import type { ResolveContext } from './destinations.ts'
import type { AmbiguousPaths } from './request-path.ts'
import type { MatchableHeads } from './route.ts'
import type { SessionTokens } from './session-tokens.ts'
import type { TunnelCounts } from './tunnels.ts'

/** Sends requests that the gateway makes itself. Failures are passed to the listener. */
export interface RequestMaker {
  call(request: CallRequest, listener: CallListener): OpenCall
  /** Connects and closes the connection, to find out whether that is possible. */
  readonly connect: ConnectOnce
}

/** Where the commands of `stdio` targets run. */
export interface StdioHostSettings {
  /** `host:port` on a loopback address. */
  readonly address: string
  /** Proves that requests are those of the proxy: the token, or the file that has it. */
  readonly token: { readonly value: string } | { readonly file: string }
  /** The namespace whose backends may run commands; all if omitted. */
  readonly namespace?: string
}

/** Objects that all requests share. Phases get them together with the context of their request. */
export interface GatewayRuntime extends Pick<RequestMaker, 'call'>, ResolveContext {
  readonly heads: MatchableHeads
  readonly ambiguousPaths: AmbiguousPaths
  /** Returns whether X-Forwarded-For of this peer is trusted. If omitted, it is never trusted. */
  readonly isTrustedProxy?: (address: string) => boolean
  readonly kinds: BackendKinds
  readonly circuits: Circuits
  /** The catalog of language models, which may be replaced while the proxy runs. */
  readonly models: { catalog: ModelCatalog }
  /** Version of the gateway software. */
  readonly version: string
  /** Memory for answers of models that are served again, in bytes, of all workers together. */
  readonly answerCacheBytes: number
  /** URL of the server that keeps such answers for several proxies; undefined if none does. */
  readonly answerServer?: string | undefined
  /** Returns the key that encrypts sessions; undefined until the control plane has sent it. */
  readonly sessionKey: () => Uint8Array | undefined
  readonly sessions: SessionTokens
  readonly tunnels: TunnelCounts
  readonly callouts: Callouts
  /** The process that runs MCP servers that are commands; undefined if none does. */
  readonly stdio?: StdioHostSettings | undefined
  /** Reports what MCP servers list. If omitted, nothing is reported. */
  readonly reportList?: ReportList | undefined
  /** Runs a step of a policy on a request. A simulation decides about steps that need other services. */
  readonly runStep: (step: Step, exchange: Exchange) => Verdict | Promise<Verdict>
}
