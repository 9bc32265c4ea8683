import type {
  Callouts,
  GrpcCallout,
  GrpcStreamCallout,
  HttpCallout,
} from '../../../ground/exchange/exchange.ts'
import type { GatewayRuntime } from '../request/runtime.ts'
import type { Telemetry } from '../telemetry/types.ts'
import { callGrpc, streamGrpc } from './grpc.ts'
import { callHttp } from './http.ts'
import { CalloutOpener } from './opener.ts'

/** Makes the calls of policies over the engine. */
export class CalloutClient implements Callouts {
  readonly #opener: CalloutOpener

  constructor(runtime: GatewayRuntime, telemetry: Telemetry) {
    this.#opener = new CalloutOpener(runtime, telemetry)
  }

  http(call: HttpCallout) {
    return callHttp(this.#opener, call)
  }

  grpc(call: GrpcCallout) {
    return callGrpc(this.#opener, call)
  }

  stream(call: GrpcStreamCallout) {
    return streamGrpc(this.#opener, call)
  }
}
