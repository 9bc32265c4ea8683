import { copyOf } from '../../../ground/base/buffers.ts'
import type { BodyTap } from '../bytes/body-sink.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { MessageBody } from '../message/message-body.ts'
import type { RequestHeadView } from '../message/request-head.ts'
import type { AddressRace, UpstreamAddress } from '../sockets/upstream-address.ts'
import { UpstreamCall } from './upstream-call.ts'

/** Maximum number of bytes that wait for a mirror; a mirror that falls further behind is aborted. */
const backlogLimit = 256 * 1024
/** Maximum time in milliseconds from the start of a mirror to the end of its response. */
const patienceMs = 30_000

/** An address that gets a copy of a request, and the head of the copy. */
export interface MirrorTarget {
  readonly address: UpstreamAddress
  /** The other addresses of the name, if there are any. */
  readonly race?: AddressRace | undefined
  /** Head in HTTP/1.1 form, without the fields that frame the body and without its empty line. */
  readonly head: string
}

/** A request that is about to be forwarded. */
interface ForwardedRequest {
  readonly request: RequestHeadView
  readonly requestBody: MessageBody
  readonly requestFraming: FramingFields
}

/** Sends copies of a request that is about to be forwarded, including the body that is forwarded. */
export function startMirror(
  parts: EngineParts,
  targets: readonly MirrorTarget[],
  { request, requestBody, requestFraming }: ForwardedRequest,
): void {
  const end = `${request.framingLine(requestFraming)}\r\n`
  const common = {
    body: undefined,
    isOnce: true,
    isOpen: true,
    isChunked: request.isSentChunked(requestFraming),
    timeoutMs: patienceMs,
    connectTimeoutMs: 0,
  }
  const calls = targets.map(({ address, race, head }) =>
    new UpstreamCall(parts, { ...common, address, race, head: head + end }).start(),
  )
  requestBody.tap = new Mirror(calls)
}

/** Copies of one request to other addresses. Their results do not affect the exchange. */
class Mirror implements BodyTap {
  readonly #calls: readonly UpstreamCall[]

  constructor(calls: readonly UpstreamCall[]) {
    this.#calls = calls
  }

  onSent(bytes: Buffer, start: number, end: number): void {
    const piece = copyOf(bytes, start, end)
    for (const call of this.#calls) {
      if (call.backlog > backlogLimit) call.close()
      else call.write(piece)
    }
  }

  onSentEnd(): void {
    for (const call of this.#calls) call.end()
  }

  onAbandon(): void {
    for (const call of this.#calls) if (!call.isRequestSent) call.close()
  }
}
