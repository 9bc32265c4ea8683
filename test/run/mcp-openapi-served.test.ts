/** APIs that serve their OpenAPI documents: the gateway fetches them, and keeps the last one that it can use. */
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { expect, it } from 'vitest'
import { stringify } from 'yaml'
import { useAuthority, useGateway, useListening } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { configMap } from '../support/manifests.ts'
import { mcpManifests, rawSession } from '../support/mcp-client.ts'
import { waitFor } from '../support/wait-for.ts'

const documentOf = (operationId: string, summary: string) => ({
  openapi: '3.1.0',
  info: { title: 'Pets', version: '1' },
  paths: { '/pets': { get: { operationId, summary } } },
})

const served = {
  status: 200,
  text: stringify(documentOf('listPets', 'Lists pets.')),
  etag: '"1"',
  /** Fetches by whether they were answered with 304. */
  unchanged: 0,
  whole: 0,
}
const answer: RequestListener = (request, response) => {
  if (request.url !== '/docs/openapi.yaml?v=1') {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"path":"called"}')
    return
  }
  if (request.headers['if-none-match'] === served.etag && served.status === 200) {
    served.unchanged++
    response.writeHead(304).end()
    return
  }
  served.whole++
  const location = { location: 'http://127.0.0.1:1/' }
  const tag = served.etag === '' ? {} : { etag: served.etag }
  response.writeHead(served.status, { ...tag, ...location }).end(served.text)
}
const api = useListening(createServer(answer))
/** The document is another one each time. */
let versions = 0
const restless = useListening(
  createServer((_, response) => {
    response.end(JSON.stringify(documentOf('listPets', `Lists pets, version ${versions++}.`)))
  }),
)
const authority = useAuthority()
const { certificate, key } = authority.issue(['api.example.com'])
const secure = useListening(createTlsServer({ cert: certificate, key }, answer))
const port = await freePort()

const target = (at: { readonly port: number }, more: object = {}, own: object = {}) => ({
  targets: [
    {
      name: 'pets',
      ...own,
      static: {
        host: '127.0.0.1',
        port: at.port,
        openapi: { path: '/docs/openapi.yaml?v=1', cacheDuration: '100ms' },
        ...more,
      },
    },
  ],
})
const running = useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(
      port,
      {
        plain: target(api),
        pinned: target(api, {}, { pinning: 'Block' }),
        secure: target(secure, {
          policies: { tls: { caCertificateRefs: [{ name: 'ca' }], sni: 'api.example.com' } },
        }),
        clear: target(secure),
        restless: target(restless),
        metadata: target(api, { host: '169.254.169.254', port: 80 }),
      },
      [configMap('ca', { 'ca.crt': authority.certificate })],
    ),
  },
}))

async function namesAt(path: string): Promise<string[]> {
  const session = await rawSession(port, path)
  const message = { jsonrpc: '2.0', id: 7, method: 'tools/list', params: {} }
  const { message: found } = await session.send(port, message)
  return (found as { result: { tools: { name: string }[] } }).result.tools.map(({ name }) => name)
}

const listed = (path: string, ...names: string[]) =>
  waitFor(`${names} at ${path}`, async () => `${await namesAt(path)}` === `${names}`)

const messageOf = async (name: string, status: 'True' | 'False') =>
  (await running.condition('GatewayBackend', name, 'Accepted', status)).message

/** Waits until the log of the gateway has a line about the document of a backend, after the first `from` characters. */
const logged = (name: string, part: string, from = 0) =>
  waitFor(`${part} in the log of ${name}`, () =>
    running.stderr
      .slice(from)
      .split('\n')
      .some((line) => line.includes(`(GatewayBackend default/${name}): ${part}`)),
  )

const sluiceOf = async (...args: string[]) =>
  (await sluice(...args, '--log-file', running.logFile)).stdout

it('serves the operations of a document from the server of the target', async () => {
  expect(await namesAt('/plain')).toEqual(['listPets'])
  expect(await namesAt('/pinned')).toEqual(['listPets'])
  expect(await namesAt('/secure')).toEqual(['listPets'])
  const session = await rawSession(port, '/plain')
  const params = { name: 'listPets', arguments: {} }
  const call = await session.send(port, { jsonrpc: '2.0', id: 8, method: 'tools/call', params })
  expect(JSON.stringify(call.message)).toContain('called')
})

it('does not fetch from metadata services, nor without the TLS that the server needs', async () => {
  await logged(
    'metadata',
    'its address is link-local or belongs to a metadata service. Its tools are',
  )
  await logged('clear', '')
  expect(await messageOf('metadata', 'False')).toContain(
    'spec.mcp.targets[0].static.openapi.path: 169.254.169.254:80/docs/openapi.yaml?v=1: its address',
  )
})

it('asks whether the document has changed, and keeps the last one while it cannot be used', async () => {
  const before = served.unchanged
  await waitFor('answers 304', () => served.unchanged > before + 3)
  const good = { status: 200, text: served.text, etag: '"2"' }
  const fails = async (status: number, text: string, problem: string) => {
    const from = running.stderr.length
    Object.assign(served, { status, text, etag: '"bad"' })
    await logged('plain', problem, from)
    expect(await namesAt('/plain')).toEqual(['listPets'])
  }
  const isRepaired = async () => {
    const from = running.stderr.length
    Object.assign(served, good)
    await logged('plain', 'it can be fetched again', from)
  }
  await fails(500, '', 'the server answers 500. The last document stays in use')
  await waitFor('the condition', async () =>
    (await messageOf('plain', 'True')).includes('the server answers 500. The last document stays'),
  )
  await isRepaired()
  await waitFor('no problem', async () => (await messageOf('plain', 'True')) === '')
  for (const [text, problem] of [
    ['openapi: 3.1.0\npaths: [\n', 'the response is not a document: '],
    ['- 1', 'the response is not an OpenAPI document'],
    ['{"openapi":"3.1.0","paths":{}}', 'the document has no operations'],
    [
      '{"openapi":"3.1.0","paths":{"/a":{"get":{"parameters":[{"$ref":"b.yaml#/c"}]}}}}',
      'no operation becomes a tool; GET /a: ',
    ],
    ['{"openapi":"4.0.0","paths":{}}', 'the document has version "4.0.0"'],
    [
      `{"paths":${'['.repeat(200)}${']'.repeat(200)}}`,
      'the document is nested more than 128 levels deep',
    ],
    [JSON.stringify({ a: 'x'.repeat(1_100_000) }), 'the document has more than 1000000 bytes'],
    ['x'.repeat(2_200_000), ''],
  ] as const) {
    await fails(200, text, problem)
    await isRepaired()
  }
  expect(running.stderr).toContain(' at line 3, column 1')
  await fails(302, '', 'the server answers 302')
  await isRepaired()
  // The tag of a document is forgotten with it.
  const other = JSON.stringify(documentOf('findPets', 'Finds pets.'))
  Object.assign(served, { text: other, etag: '' })
  await listed('/plain', 'findPets')
  Object.assign(served, good)
  await listed('/plain', 'listPets')
})

it('records at most 20 changes of a document in an hour, and says so', async () => {
  const problem = 'the document has changed more than 20 times within an hour. The last document'
  await logged('restless', problem)
  await waitFor('the condition', async () =>
    (await messageOf('restless', 'True')).includes(problem),
  )
  const events = await sluiceOf('log', '-o', 'json')
  const recorded = events.match(/Lists pets, version \d+\./g) ?? []
  expect(new Set(recorded).size).toBe(20)
  expect(await namesAt('/restless')).toEqual(['listPets'])
})

it('records a changed document and the change of its tools, and withholds what is not approved', async () => {
  Object.assign(served, {
    etag: '"3"',
    text: JSON.stringify(documentOf('deletePets', 'Deletes all pets.')),
  })
  await listed('/plain', 'deletePets')
  await listed('/pinned')
  await listed('/secure', 'deletePets')
  await waitFor('the change', async () => {
    const diff = await sluiceOf('tools', 'diff', '--from', '1', '--backend', 'plain')
    return diff.includes('deletePets') && diff.includes('listPets')
  })
  await sluiceOf('tools', 'approve', 'default/pinned', '--reason', 'read')
  await listed('/pinned', 'deletePets')
})
