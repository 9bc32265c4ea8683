// For workerd: POST the input, and read the result. Workers often create such objects while they start.
import { Builtin, Mask, RateLimiter } from '@sluice/core'
import { runAll } from './run.mjs'

const mask = new Mask([Builtin.Email])
const limiter = new RateLimiter({ rate: 1 })

export default {
  async fetch(request) {
    const result = await runAll(await request.json())
    const early = [mask.apply('ada@example.com'), limiter.take().allowed]
    return Response.json({ ...result, early })
  },
}
