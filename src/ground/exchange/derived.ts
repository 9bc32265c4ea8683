/** Exchanges derived from another one, for steps that process messages of the gateway itself. */
import type { Body, Exchange, RequestHead, ResponseHead } from './exchange.ts'

/** Has its own messages, and reads everything else from the original exchange, even after that is over. */
export abstract class FollowingExchange implements Exchange {
  abstract readonly request: RequestHead
  abstract readonly requestBody: Body
  abstract readonly response: ResponseHead | undefined
  abstract readonly responseBody: Body | undefined
  protected readonly origin: Exchange

  constructor(origin: Exchange) {
    this.origin = origin
  }

  get source() {
    return this.origin.source
  }
  get rawSource() {
    return this.origin.rawSource
  }
  get local() {
    return this.origin.local
  }
  get peerCertificate() {
    return this.origin.peerCertificate
  }
  get backend() {
    return this.origin.backend
  }
  get bufferLimit() {
    return this.origin.bufferLimit
  }
  get startedAt() {
    return this.origin.startedAt
  }
  get isOver() {
    return this.origin.isOver
  }
  get place() {
    return this.origin.place
  }
  get learned() {
    return this.origin.learned
  }
  get extensions() {
    return this.origin.extensions
  }
}

export type CopiedFields = Pick<
  Exchange,
  'source' | 'rawSource' | 'local' | 'place' | 'backend' | 'bufferLimit' | 'startedAt'
>

/** Copies fields of the original exchange, because that object may serve another request later. */
export abstract class CopiedExchange implements Exchange {
  abstract readonly request: RequestHead
  abstract readonly requestBody: Body
  abstract readonly peerCertificate: Exchange['peerCertificate']
  abstract readonly isOver: boolean
  abstract readonly learned: Exchange['learned']
  abstract readonly extensions: Exchange['extensions']
  readonly response = undefined
  readonly responseBody = undefined
  readonly source: Exchange['source']
  readonly rawSource: Exchange['rawSource']
  readonly local: Exchange['local']
  readonly place: Exchange['place']
  readonly backend: Exchange['backend']
  readonly bufferLimit: number
  readonly startedAt: number

  constructor(origin: CopiedFields) {
    this.source = origin.source
    this.rawSource = origin.rawSource
    this.local = origin.local
    this.place = origin.place
    this.backend = origin.backend
    this.bufferLimit = origin.bufferLimit
    this.startedAt = origin.startedAt
  }
}
