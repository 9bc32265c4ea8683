/** Real programs as commands: servers of the registries, with clients of the official SDKs. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { connectSdkClient } from '../support/mcp-sdks.ts'
import { describeWithParts, findPart } from '../support/parts.ts'

const root = join(import.meta.dirname, '..', '..')
const everything = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const files = 'node_modules/@modelcontextprotocol/server-filesystem/dist/index.js'
const python = join(root, 'test', 'support', 'mcp_python_server.py')
const folder = useFolder('sluice-files-')
writeFileSync(join(folder, 'note.txt'), 'of the folder')
const outside = mkdtempSync(join(tmpdir(), 'sluice-outside-'))
const port = await freePort()

const pathOf = (name: Parameters<typeof findPart>[0]) => {
  const part = findPart(name)
  return part.found ? part.path : '/absent'
}
const command = (name: string, words: readonly string[], more: object = {}) => ({
  targets: [{ name, stdio: { command: words, ...more } }],
})

useGateway(() => ({
  env: { SLUICE_STDIO_SERVERS: 'true' },
  manifests: {
    'all.yaml': mcpManifests(port, {
      everything: command('e', [process.execPath, everything, 'stdio']),
      files: command('f', [process.execPath, join(pathOf('mcp-filesystem'), files), folder]),
      python: command('p', [pathOf('python3'), python, 'stdio'], {
        env: [{ name: 'PYTHONPATH', value: pathOf('python-mcp') }],
      }),
      shared: command('p', [pathOf('python3'), python, 'stdio'], {
        scope: 'Shared',
        env: [{ name: 'PYTHONPATH', value: pathOf('python-mcp') }],
      }),
    }),
  },
}))

describe('server-everything', () => {
  const client = useFixture(() => connectClient(port, '/everything'))

  it('serves tools, prompts, resources and progress', async () => {
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('echo')
    const echo = { name: 'echo', arguments: { message: 'hi' } }
    expect(await client.callTool(echo)).toMatchObject({
      content: [{ type: 'text', text: expect.stringContaining('hi') }],
    })
    expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0)
    const { resources } = await client.listResources()
    const [first] = resources
    expect(await client.readResource({ uri: first?.uri ?? '' })).toHaveProperty('contents')
  })
})

describeWithParts(['mcp-filesystem'], 'server-filesystem', () => {
  it('reads its folder, and refuses others', async () => {
    const client = await connectClient(port, '/files')
    const read = (path: string) => client.callTool({ name: 'read_text_file', arguments: { path } })
    expect(await read(join(folder, 'note.txt'))).toMatchObject({
      content: [{ type: 'text', text: 'of the folder' }],
    })
    expect(await read(join(outside, 'x'))).toMatchObject({ isError: true })
    await client.close()
  })
})

describeWithParts(['python3', 'python-mcp', 'mcp-sdks'], 'a FastMCP server', () => {
  it.each([
    ['legacy', 'python'],
    ['auto', 'shared'],
  ])('serves the second generation of the SDK: %s at %s', async (mode, path) => {
    const client = await connectSdkClient(`http://127.0.0.1:${port}/${path}`, mode)
    const names = (await client.listTools()).tools.map(({ name }) => name)
    expect(names).toEqual(['add', 'steps', 'fail'])
    const add = await client.callTool({ name: 'add', arguments: { a: 2, b: 3 } })
    expect(add).toMatchObject({ structuredContent: { result: 5 } })
    await client.close()
  })
})
