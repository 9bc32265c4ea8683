/** What policies call other services with. */
import type { Callouts } from '../../exchange/exchange.ts'
import type { GatewayRuntime } from '../request/runtime.ts'
import type { Telemetry } from '../telemetry/types.ts'
import { GrpcCallouts } from './grpc.ts'
import { HttpCallouts } from './http.ts'
import { CalloutOpener } from './opener.ts'

/** `runtime` is called for at the first call, and not before. */
export function openCallouts(runtime: () => GatewayRuntime, telemetry: Telemetry): Callouts {
  let made: { readonly http: HttpCallouts; readonly grpc: GrpcCallouts } | undefined
  const use = () => {
    if (made === undefined) {
      const opener = new CalloutOpener(runtime(), telemetry)
      made = { http: new HttpCallouts(opener), grpc: new GrpcCallouts(opener) }
    }
    return made
  }
  return {
    http: (callout) => use().http.call(callout),
    grpc: (callout) => use().grpc.call(callout),
    stream: (callout) => use().grpc.stream(callout),
  }
}
