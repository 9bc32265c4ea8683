import type { CallListener, CallRequest, OpenCall } from '../../engine/contracts/calls.ts'
import type { Callouts } from '../../exchange/exchange.ts'
import type { ConfigStore } from '../config/store.ts'
import type { RequestCap } from '../upstream/request-cap.ts'
import type { BackendKinds } from './backend-kind.ts'
import type { DestinationResolver } from './destinations.ts'
import type { AmbiguousPaths } from './request-path.ts'
import type { MatchableHeads } from './route.ts'
import type { SessionTokens } from './session/tokens.ts'

/** Makes requests of the gateway's own; the engine does. What goes wrong is told to the listener. */
export interface RequestMaker {
  call(request: CallRequest, listener: CallListener): OpenCall
}

/** What all requests share: phases get it beside the context of their request. */
export interface GatewayRuntime extends RequestMaker {
  readonly config: ConfigStore
  readonly heads: MatchableHeads
  readonly ambiguousPaths: AmbiguousPaths
  readonly resolver: DestinationResolver
  /** Is what this peer says of the client believed? Absent: nobody is. */
  readonly isTrustedProxy?: (address: string) => boolean
  /** Uniform in [0, 1). */
  readonly random: () => number
  /** Of requests under way to one address of a backend; no limit where absent. */
  readonly cap?: RequestCap
  readonly kinds: BackendKinds
  /** Version of the product. */
  readonly version: string
  /** Key of sessions; undefined until it has arrived. */
  readonly sessionKey: () => Uint8Array | undefined
  readonly sessions: SessionTokens
  readonly callouts: Callouts
}
