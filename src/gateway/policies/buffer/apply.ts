import { choice, count, type Infer, optional, record } from '../../../ground/base/shape.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import { type Body, next } from '../../../ground/exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'

const side = record({
  maxBytes: optional(count),
  failureMode: optional(choice('FailClosed', 'FailOpen')),
})

/** The compiled form that proxies receive. */
const shape = record({ request: optional(side), response: optional(side) })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: ({ request, response }) => ({
    ...(request !== undefined && {
      async onRequest({ requestBody, bufferLimit }) {
        await hold(requestBody, request, bufferLimit, 'body_too_large')
        return next
      },
    }),
    ...(response !== undefined && {
      async onResponse({ responseBody, bufferLimit }) {
        if (responseBody === undefined) return
        await hold(responseBody, response, bufferLimit, 'response_too_large')
      },
    }),
  }),
}

async function hold(
  body: Body,
  { maxBytes, failureMode }: Infer<typeof side>,
  bufferLimit: number,
  code: 'body_too_large' | 'response_too_large',
): Promise<void> {
  const most = maxBytes ?? bufferLimit
  const buffered = await body.buffer(most)
  if (!buffered.complete) {
    if (failureMode === 'FailOpen') return
    throw new GatewayError(
      code,
      `the body has more than ${most} bytes, the limit of traffic.buffer`,
    )
  }
  // A replaced body gets a Content-Length, with which trailers cannot be sent.
  if (body.length === undefined && body.trailers === '') body.replace(buffered.bytes)
}

export default apply
