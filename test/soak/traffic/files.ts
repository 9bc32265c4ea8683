/** Ranges, conditions and lengths of a file that nginx serves. */

import { send, type TestResponse } from '../../support/http-client.ts'
import { hostOf } from '../../support/manifests.ts'
import type { Outcome } from '../ledger.ts'
import { fileText } from '../servers.ts'
import { entranceOf, type Traffic } from './context.ts'

const path = '/files/lines.txt'

const wrong = (text: string, { status, headers, body }: TestResponse): Outcome => ({
  kind: status >= 500 ? 'failed' : 'wrong',
  ...(status < 500 && { invariant: 'framing' as const }),
  text,
  received: `${status} ${JSON.stringify(headers)} ${body.slice(0, 2_000)}`,
})

export const files: Traffic = async (context) => {
  const { ledger, random, servers } = context
  if (!servers.upstreams.has('nginx')) return
  const { port, ways } = entranceOf(context)
  const ask = (method: string, fields: Readonly<Record<string, string>>) =>
    send(port, { method, path, headers: { host: hostOf('files'), ...fields } })
  const first = random.below(fileText.length)
  const last = Math.min(first + random.below(70_000), fileText.length - 1)
  await ledger.exchange('file', [...ways, 'nginx'], `${path} ${first}-${last}`, async () => {
    const part = await ask('GET', { range: `bytes=${first}-${last}` })
    const expected = `bytes ${first}-${last}/${fileText.length}`
    if (part.status !== 206 || part.headers['content-range'] !== expected) {
      return wrong(`${part.status} ${part.headers['content-range']} for ${expected}`, part)
    }
    if (part.body !== fileText.slice(first, last + 1)) {
      return wrong(`other bytes than those of ${expected}`, part)
    }
    const head = await ask('HEAD', {})
    if (head.status !== 200 || Number(head.headers['content-length']) !== fileText.length) {
      return wrong(`HEAD with length ${head.headers['content-length']}`, head)
    }
    const same = await ask('GET', { 'if-none-match': `${head.headers.etag}` })
    if (same.status !== 304 || same.body !== '') return wrong('no 304 for the ETag', same)
    return undefined
  })
}
