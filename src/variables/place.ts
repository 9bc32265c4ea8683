import type { CelRecord, CelResult } from '../cel/index.ts'
import { ExchangeView, type Pointer } from './view.ts'

/** `destination`: the address of the gateway that the client has reached. */
export class DestinationView extends ExchangeView {
  constructor(pointer: Pointer) {
    super(pointer, ['address', 'port', 'hostname'])
  }

  override field(name: string): CelResult | undefined {
    const { exchange } = this
    if (exchange === undefined) return undefined
    switch (name) {
      case 'address':
        return exchange.local.address
      case 'port':
        return BigInt(exchange.local.port)
      default:
        return undefined
    }
  }
}

/** `backend`: where the request goes, once that is known. */
export class BackendView extends ExchangeView {
  constructor(pointer: Pointer) {
    super(pointer, ['name', 'type', 'protocol'])
  }

  override field(name: string): CelResult | undefined {
    const backend = this.exchange?.backend
    switch (name) {
      case 'name':
        return backend?.name
      case 'type':
        return backend?.type
      case 'protocol':
        return backend?.protocol
      default:
        return undefined
    }
  }
}

/** `proxy`: which parts of the configuration the request has met so far. */
export class ProxyView extends ExchangeView {
  constructor(pointer: Pointer) {
    super(pointer, ['gateway', 'listener', 'route'])
  }

  override field(name: string): CelResult | undefined {
    const place = this.exchange?.place
    if (place === undefined) return undefined
    switch (name) {
      case 'gateway':
        return objectName(place.gateway)
      case 'listener':
        return place.listener === '' ? undefined : { name: place.listener }
      case 'route':
        return place.route === undefined
          ? undefined
          : { ...objectName(place.route), rule: place.rule }
      default:
        return undefined
    }
  }
}

/** The parts of `namespace/name`. */
function objectName(text: string): CelRecord | undefined {
  const slash = text.indexOf('/')
  if (slash < 0) return undefined
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) }
}
