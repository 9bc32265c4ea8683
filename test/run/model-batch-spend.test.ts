/** Results of batches cost once, at the price of batches, however often and however far clients fetch them. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { useFolder, useGateway, useListening } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { json } from '../support/vendors/vendor.ts'
import { eventually } from '../support/wait-for.ts'

const usage = { input_tokens: 1_000, output_tokens: 100 }
const message = { type: 'message', role: 'assistant', model: 'claude-opus-4-8', content: [], usage }
const completion = {
  object: 'chat.completion',
  model: 'gpt-4o-2024-08-06',
  choices: [],
  usage: { prompt_tokens: 2_000, completion_tokens: 200, total_tokens: 2_200 },
}
const results: Readonly<Record<string, readonly object[]>> = {
  c: [
    { custom_id: '1', result: { type: 'succeeded', message } },
    { custom_id: '2', result: { type: 'errored', error: {} } },
    { custom_id: '3', result: { type: 'succeeded', message } },
  ],
  a: [
    { id: '1', custom_id: '1', response: { status_code: 200, body: completion }, error: null },
    { id: '2', custom_id: '2', response: { status_code: 200, body: completion }, error: null },
  ],
}
/** How much of the results the vendor sends before the connection breaks; all of them if not set. */
let sent: number | undefined
const ranges: unknown[] = []

function answer({ method, url = '', headers }: IncomingMessage, response: ServerResponse): void {
  const name = url.includes('/messages/') ? 'c' : 'a'
  if (!/\/(results|content)$/.test(url)) {
    const ended = { processing_status: 'ended', status: 'completed', output_file_id: 'file-out' }
    const id =
      name === 'c'
        ? 'msgbatch_1'
        : method === 'POST' && url.endsWith('/files')
          ? 'file-in'
          : 'batch_1'
    json(response, 200, { id, ...ended })
    return
  }
  ranges.push(headers.range)
  const text = (results[name] ?? []).map((line) => `${JSON.stringify(line)}\n`).join('')
  response.writeHead(200, { 'content-length': text.length, 'content-type': 'application/x-jsonl' })
  if (sent === undefined) response.end(text)
  else response.write(text.slice(0, sent), () => response.destroy())
}

const vendor = useListening(createServer(answer))
const port = await freePort()
const records = join(useFolder('sluice-batch-spend-'), 'records')
const running = useGateway(() => {
  const at = { host: '127.0.0.1', port: vendor.port }
  return {
    args: ['--record', 'all', '--record-dir', records],
    manifests: [
      gateway(port),
      secret('keys', { ann: JSON.stringify({ key: 'key-of-ann' }) }),
      ...[
        ['a', { vendorA: {}, ...at }],
        ['c', { vendorC: {}, ...at }],
      ].flatMap(([name, provider]) => [
        aiBackend(name as string, { provider }, { auth: { key: 'k' } }),
        routeByPath(name as string),
        policy(name as string, `HTTPRoute/${name}`, {
          traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
        }),
      ]),
    ],
  }
})

const ask = (path: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${port}${path}`, {
    ...init,
    headers: {
      authorization: 'Bearer key-of-ann',
      'content-type': 'application/json',
      ...init.headers,
    },
  })
const made = async (path: string) =>
  (await (await ask(path, { method: 'POST', body: '{}' })).json()) as Record<string, string>
const read = (path: string, init: RequestInit = {}) =>
  ask(path, init)
    .then((response) => response.text())
    .catch(() => 'broken')

it('adds each result once to the spend of the client that fetches it', async () => {
  const { id = '' } = await made('/c/v1/messages/batches')
  const { output_file_id: file = '' } = await made('/a/v1/batches')
  const paths = [`/c/v1/messages/batches/${id}/results`, `/a/v1/files/${file}/content`]
  for (const path of paths) {
    sent = JSON.stringify(results[path[1] ?? '']?.[0]).length + 5
    await read(path)
    sent = undefined
    await read(path)
    await read(path, { headers: { range: 'bytes=5-' } })
  }
  expect(ranges).toEqual(Array(6).fill(undefined))
  await eventually(async () => {
    const { stdout } = await sluice(
      'spend',
      '--record-dir',
      records,
      '-o',
      'csv',
      '--by',
      'provider,model,service',
    )
    // Half of the usual prices: 2 × (1,000 × 2.5 + 100 × 12.5) and 2 × (2,000 × 1.25 + 200 × 5) per million.
    expect(stdout).toMatch(/anthropic,claude-opus-4-8,batch,1,2000,.*0\.0075/)
    expect(stdout).toMatch(/openai,gpt-4o-2024-08-06,batch,1,4000,.*0\.007/)
    expect(stdout.trim().split('\n')).toHaveLength(3)
  })
  expect(running.stdout).toMatch(
    /model\.batch=\S+ model\.batch\.results=2 cost\.status=exact cost\.total=0\.0075/,
  )
})
