/** Replaces the network for the data plane of a simulation. Every call fails, and its result counts as unknown. */

import type { RequestMaker } from '../../gateway/proxy/request/runtime.ts'
import type { Telemetry } from '../../gateway/proxy/telemetry/types.ts'
import type { Lookup } from '../../gateway/proxy/upstream/lookup.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import type { Callouts, GrpcStream } from '../../ground/exchange/exchange.ts'

/** Marks the result of a call as unknown in the exchange that is being simulated. */
type Mark = (reason: string) => void

const unreachable = () => new GatewayError('connect_failed', 'a simulation makes no calls')

const noStream: GrpcStream = {
  send: () => true,
  expect: () => undefined,
  pause: () => undefined,
  resume: () => undefined,
  end: () => undefined,
  close: () => undefined,
}

/** Makes callouts that fail. */
export function outsideCallouts(mark: Mark): Callouts {
  const refuse = () => {
    mark('it calls another service')
    return Promise.reject(unreachable())
  }
  return {
    http: refuse,
    grpc: refuse,
    stream({ listener }) {
      mark('it calls another service')
      queueMicrotask(() => listener.onEnd(unreachable()))
      return noStream
    },
  }
}

/** Makes an engine whose requests fail. */
export function outsideEngine(mark: Mark): RequestMaker {
  return {
    call(_request, listener) {
      mark('it calls a server')
      queueMicrotask(() => listener.onFailure(unreachable()))
      const nothing = () => undefined
      return {
        pause: nothing,
        resume: nothing,
        close: nothing,
        write: () => true,
        end: nothing,
        limit: nothing,
      }
    },
    connect(_address, _timeoutMs, onResult) {
      queueMicrotask(() => onResult(unreachable()))
      return () => undefined
    },
  }
}

/** Resolves every name to an address for documentation (RFC 5737), because nothing is sent to it. */
export const outsideLookup: Lookup = () =>
  Promise.resolve({ addresses: ['192.0.2.1'], ttlMs: Number.MAX_SAFE_INTEGER })

const ignore = () => undefined

export const noTelemetry: Telemetry = {
  onDone: ignore,
  onEjected: ignore,
  onHealthChange: ignore,
  onExport: ignore,
  onCallout: ignore,
  onLookup: ignore,
  onStreamDone: ignore,
  onBadHead: ignore,
}
