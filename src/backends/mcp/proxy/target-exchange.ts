import { FollowingExchange } from '../../../exchange/derived.ts'
import type { Exchange, RequestHead } from '../../../exchange/exchange.ts'
import { type FieldPairs, MemoryBody } from '../../../exchange/memory-message.ts'

/** A request that the gateway makes of the client's for one target, as backend policies see it. */
export class TargetExchange extends FollowingExchange {
  readonly request: RequestHead & { readonly headers: FieldPairs }
  readonly requestBody: MemoryBody
  readonly response = undefined
  readonly responseBody = undefined

  constructor(
    client: Exchange,
    head: Pick<RequestHead, 'method' | 'scheme' | 'authority' | 'path' | 'query'>,
    headers: FieldPairs,
    body: Uint8Array | undefined,
  ) {
    super(client)
    this.request = { ...head, version: '1.1', headers }
    this.requestBody = new MemoryBody(body)
  }
}
