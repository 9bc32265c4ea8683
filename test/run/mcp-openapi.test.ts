/** APIs with an OpenAPI document as MCP servers: clients of the official SDKs call operations as tools. */
import { createServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { configMap, secret } from '../support/manifests.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { connectSdkClient } from '../support/mcp-sdks.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { pets, swagger } from '../support/openapi-documents.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

interface ReceivedRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

const received: ReceivedRequest[] = []
const last = () => received.at(-1) as ReceivedRequest
const api = useListening(
  createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      received.push({ method, url, headers, body: Buffer.concat(chunks).toString() })
      const json = (status: number, value: unknown) => {
        response.writeHead(status, { 'content-type': 'application/json' })
        response.end(JSON.stringify(value))
      }
      if (url.includes('/large')) json(200, { text: 'ä'.repeat(4_000) })
      else if (url.includes('/missing')) json(404, { error: 'no such pet' })
      else if (url.includes('/moved'))
        response.writeHead(302, { location: 'http://169.254.169.254/' }).end()
      else if (url.includes('/picture'))
        response.writeHead(200, { 'content-type': 'image/png' }).end('png')
      else if (method === 'DELETE') response.writeHead(204).end()
      else if (url.includes('/list')) json(200, [1, 2])
      else json(200, { id: 7, name: 'Rex' })
    })
  }),
)

const port = await freePort()
const server = useMcpServer({
  offer: (mcp) =>
    mcp.registerTool('echo', {}, () => ({ content: [{ type: 'text', text: 'mcp' }] })),
})
const target = (name: string, map: string, openapi: object = {}, more: object = {}) => ({
  name,
  static: {
    host: '127.0.0.1',
    port: api.port,
    openapi: { configMap: { name: map }, ...openapi },
    ...more,
  },
})
const running = useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(
      port,
      {
        pets: {
          targets: [
            target(
              'pets',
              'pets',
              { exclude: [{ tags: ['admin'] }], maxResultSize: 1_024 },
              { policies: { auth: { secretRef: { name: 'key' } } } },
            ),
          ],
        },
        both: {
          targets: [
            target(
              'p',
              'pets',
              {
                include: [{ pathPrefixes: ['/pets'], methods: ['GET'] }],
                tools: [{ operation: 'getPet', name: 'pet', description: 'Finds a pet.' }],
                outputSchemas: true,
              },
              { path: '/base/' },
            ),
            { name: 'm', static: { host: '127.0.0.1', port: server.port } },
          ],
        },
        old: { targets: [target('old', 'old')] },
        broken: { targets: [target('b', 'broken')] },
        absent: { targets: [target('a', 'absent')] },
      },
      [
        configMap('pets', { 'openapi.yaml': stringify(pets) }),
        configMap('old', { 'openapi.yaml': JSON.stringify(swagger) }),
        configMap('broken', { 'openapi.yaml': 'openapi: 4.0.0\npaths: {}\n' }),
        secret('key', { Authorization: 'backend-secret' }),
      ],
    ),
  },
}))

const client = useFixture(() =>
  connectClient(port, '/pets', {}, { authorization: 'Bearer client' }),
)
const call = async (name: string, args: Record<string, unknown> = {}) =>
  (await client.callTool({ name, arguments: args })) as {
    content: { type: string; text: string; mimeType?: string }[]
    structuredContent?: unknown
    isError?: boolean
  }

describe('operations of a document', () => {
  it('are tools with schemas, annotations and the names of operations', async () => {
    const { tools } = await client.listTools()
    const names = tools.map(({ name }) => name)
    expect(names).toContain('get_without-id')
    expect(names).not.toContain('reset')
    const byName = Object.fromEntries(tools.map((one) => [one.name, one]))
    expect(byName.getPet).toMatchObject({
      description: 'Get a pet',
      annotations: { title: 'Get a pet', readOnlyHint: true },
      inputSchema: { required: ['path'], additionalProperties: false },
    })
    // Credentials are no arguments.
    expect(byName.getPet?.inputSchema.properties?.query).toMatchObject({
      properties: { fields: { type: 'array' }, where: { type: 'object' } },
    })
    expect(JSON.stringify(byName.getPet)).not.toMatch(/api_key|Authorization/)
    expect(byName.deletePet?.annotations).toEqual({
      readOnlyHint: false,
      destructiveHint: true,
      idempotentHint: true,
    })
    // The schema refers to itself, and requests have nothing that only responses have.
    expect(byName.putPet?.inputSchema).toMatchObject({
      properties: { body: { $ref: '#/$defs/Pet' } },
      $defs: {
        Pet: {
          required: ['name', 'secret'],
          properties: {
            name: { type: ['string', 'null'] },
            age: { type: 'number', exclusiveMinimum: 0 },
            friends: { items: { $ref: '#/$defs/Pet' } },
          },
        },
      },
    })
  })

  it('are called with the credentials of the policy, which arguments cannot set', async () => {
    const { content, structuredContent } = await call('getPet', {
      path: { id: 'a/b c' },
      query: { fields: ['x', 'y'], where: { age: 3 } },
      header: { 'X-Trace': 't' },
    })
    expect(last()).toMatchObject({
      method: 'GET',
      url: '/v3/pets/a%2Fb%20c?fields=x%7Cy&where%5Bage%5D=3',
      headers: {
        'x-trace': 't',
        authorization: 'Bearer backend-secret',
        host: `127.0.0.1:${api.port}`,
      },
    })
    expect(structuredContent).toEqual({ id: 7, name: 'Rex' })
    expect(content).toEqual([{ type: 'text', text: '{"id":7,"name":"Rex"}' }])
    const count = received.length
    for (const args of [
      { path: { id: '1' }, query: { api_key: 'mine' } },
      { path: { id: '1' }, header: { Authorization: 'mine' } },
      { path: { id: '..' } },
      { path: { id: '%2e%2e' } },
      { path: {} },
    ]) {
      expect(await call('getPet', args)).toMatchObject({ isError: true })
    }
    expect(received).toHaveLength(count)
  })

  it('have bodies of JSON, forms and multipart', async () => {
    await call('putPet', { path: { id: '1' }, body: { name: null, secret: 's' } })
    expect(last()).toMatchObject({
      method: 'PUT',
      body: '{"name":null,"secret":"s"}',
      headers: { 'content-type': 'application/json' },
    })
    await call('search', { body: { q: 'a&b=c', tags: ['x', 'y'] } })
    expect(last().body).toBe('q=a%26b%3Dc&tags=x,y')
    await call('uploadPhoto', {
      path: { id: '1' },
      body: { file: 'aGk=', note: 'n', meta: { a: 1 } },
    })
    expect(last().body.split('\r\n')).toEqual([
      expect.stringMatching(/^--[0-9a-f]{32}$/),
      'content-disposition: form-data; name="file"; filename="file"',
      'content-type: application/octet-stream',
      '',
      'hi',
      expect.any(String),
      'content-disposition: form-data; name="note"',
      '',
      'n',
      expect.any(String),
      'content-disposition: form-data; name="meta"',
      'content-type: application/json',
      '',
      '{"a":1}',
      expect.stringMatching(/--$/),
      '',
    ])
  })

  it('have results that say what happened', async () => {
    expect(await call('missing')).toMatchObject({
      isError: true,
      content: [{ text: 'HTTP status 404: {"error":"no such pet"}' }],
    })
    expect(await call('deletePet', { path: { id: '1' } })).toMatchObject({
      content: [{ text: 'HTTP status 204, without content' }],
    })
    expect(await call('picture')).toMatchObject({
      content: [{ type: 'image', mimeType: 'image/png' }],
    })
    expect(await call('list')).toMatchObject({ content: [{ type: 'text', text: '[1,2]' }] })
    const { content, structuredContent } = await call('large')
    expect(content[0]?.text).toMatch(
      /^\{"text":"ä+\n\[The response has at least \d+ bytes, of which only the first 1024/,
    )
    expect(structuredContent).toBeUndefined()
  })

  it('CVE-2026-39885, CVE-2026-59973, CVE-2026-115751: never lead to files and other hosts', async () => {
    const condition = await running.condition('GatewayBackend', 'pets', 'Accepted', 'True')
    expect(condition.message).toContain(
      'GET /file: $ref "file:///etc/passwd" leads out of the document',
    )
    expect(condition.message).toContain(
      'GET /meta: $ref "http://169.254.169.254./latest/meta-data/" leads out',
    )
    expect(condition.message).toContain(
      'GET /nowhere: $ref "#/components/parameters/None" names nothing',
    )
    // The client gets the redirect; the gateway does not follow it.
    expect(await call('moved')).toMatchObject({
      isError: true,
      content: [{ text: 'HTTP status 302' }],
    })
  })

  it('of Swagger 2.0 keep their formats of lists', async () => {
    const old = await connectClient(port, '/old')
    await old.callTool({
      name: 'items',
      arguments: { query: { ids: ['a', 'b'], tags: ['c', 'd'], kinds: ['e', 'f'] } },
    })
    expect(last().url).toBe('/old/items?ids=a%7Cb&tags=c&tags=d&kinds=e,f')
    await old.callTool({ name: 'addItem', arguments: { body: { name: 'n' } } })
    expect(last()).toMatchObject({ method: 'POST', url: '/old/items/new', body: '{"name":"n"}' })
    await old.close()
  })
})

it('serves an API beside an MCP server, with chosen operations and names', async () => {
  const both = await connectClient(port, '/both')
  const { tools } = await both.listTools()
  expect(tools.map(({ name }) => name)).toEqual(['p_pet', 'm_echo'])
  expect(tools[0]).toMatchObject({
    description: 'Finds a pet.',
    outputSchema: { type: 'object', required: ['id', 'name'] },
  })
  expect(await both.callTool({ name: 'p_pet', arguments: { path: { id: '1' } } })).toMatchObject({
    structuredContent: { id: 7 },
  })
  expect(last().url).toBe('/base/pets/1')
  expect(await both.callTool({ name: 'm_echo' })).toMatchObject({ content: [{ text: 'mcp' }] })
  await both.close()
})

it('reports documents that cannot be used', async () => {
  const broken = await running.condition('GatewayBackend', 'broken', 'Accepted', 'False')
  expect(broken.message).toContain(
    'spec.mcp.targets[0].static.openapi: the document has version "4.0.0"',
  )
  const absent = await running.condition('GatewayBackend', 'absent', 'Accepted', 'False')
  expect(absent.message).toContain('ConfigMap default/absent does not exist')
  running.write(
    'absent.yaml',
    JSON.stringify(configMap('absent', { 'openapi.yaml': JSON.stringify(swagger) })),
  )
  await running.condition('GatewayBackend', 'absent', 'Accepted', 'True')
})

it('records versions of tools, which change with the document', async () => {
  const { tools } = await (await connectClient(port, '/absent')).listTools()
  expect(tools.map(({ name }) => name)).toEqual(['items', 'addItem'])
  const { '/items': items } = swagger.paths
  const changed = {
    ...swagger,
    paths: { '/items': { get: { ...items.get, summary: 'All items' } } },
  }
  running.write(
    'absent.yaml',
    JSON.stringify(configMap('absent', { 'openapi.yaml': JSON.stringify(changed) })),
  )
  const where = ['--backend', 'absent', '--log-file', running.logFile]
  const found = await waitFor('the change', async () => {
    await (await connectClient(port, '/absent')).listTools()
    const { stdout } = await sluice('tools', 'diff', '--from', '1', ...where)
    return stdout.includes('items: changed') && stdout
  })
  expect(found).toContain('  + description: All items')
  expect(found).toContain('addItem: removed')
})

describeWithParts(['mcp-sdks'], 'with the second generation of the SDK', () => {
  it.each(['legacy', 'auto'])('calls operations in the era of mode %s', async (mode) => {
    const sdk = await connectSdkClient(`http://127.0.0.1:${port}/pets`, mode)
    expect((await sdk.listTools()).tools.map(({ name }) => name)).toContain('getPet')
    expect(await sdk.callTool({ name: 'getPet', arguments: { path: { id: '2' } } })).toMatchObject({
      structuredContent: { id: 7, name: 'Rex' },
    })
    expect(last().url).toBe('/v3/pets/2')
    await sdk.close()
  })
})
