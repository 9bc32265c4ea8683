import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { readAccessLog } from './access-log.ts'
import { readCurl } from './curl.ts'
import { readHar } from './har.ts'
import { shellWords } from './shell-words.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-parsers-'))
afterAll(() => rmSync(folder, { recursive: true }))

function file(content: unknown): string {
  const path = join(folder, `${Math.random()}`)
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

describe('shell words', () => {
  it('splits at white space and joins quoted parts', () => {
    expect(shellWords(`a  'b c'"d \\"e\\" \\n"\\ f\n g`)).toEqual(['a', 'b cd "e" \\n f', 'g'])
    expect(shellWords(`a '' "$x"$y`)).toEqual(['a', '', '$x$y'])
  })

  it('continues a line that ends with a backslash', () => {
    expect(shellWords('curl \\\n  -k \\\r\n x')).toEqual(['curl', '-k', 'x'])
  })

  it("reads escapes of $'…'", () => {
    expect(shellWords(`$'a\\n\\x41\\u00e9\\'\\101'`)).toEqual(["a\nAé'A"])
  })

  it('rejects a quote that is not closed', () => {
    expect(() => shellWords(`curl 'x`)).toThrow('a quote at offset 5 is not closed')
  })
})

describe('curl command lines', () => {
  it('reads URL, method and headers', () => {
    const request = readCurl(
      `curl -X PUT 'https://App.example.com:8443/a%2Fb?x=1#f' -H 'X-A: 1' -H 'Accept:'`,
    )
    expect(request).toMatchObject({
      method: 'PUT',
      scheme: 'https',
      host: 'app.example.com:8443',
      path: '/a%2Fb',
      query: 'x=1',
      urlPort: 8443,
      headers: [{ name: 'User-Agent' }, { name: 'X-A', value: '1' }],
    })
  })

  it('sends data with POST as a form, or as JSON', () => {
    const form = readCurl(`curl app.example.com -d a=1 --data-raw @b -u me:pw`)
    expect(form).toMatchObject({ method: 'POST', scheme: 'http', path: '/' })
    expect(Buffer.from(form.body ?? '').toString()).toBe('a=1&@b')
    expect(form.headers).toContainEqual({
      name: 'Content-Type',
      value: 'application/x-www-form-urlencoded',
    })
    expect(form.headers).toContainEqual({ name: 'Authorization', value: 'Basic bWU6cHc=' })
    const json = readCurl(`curl --json '{"a":1}' http://x/`)
    expect(json.headers).toContainEqual({ name: 'Content-Type', value: 'application/json' })
  })

  it('puts data into the query for -G, and sends HEAD for -I', () => {
    expect(readCurl('curl -G -d a=1 -d b=2 http://x/p')).toMatchObject({
      method: 'GET',
      query: 'a=1&b=2',
    })
    expect(readCurl('curl -skI http://x/p').method).toBe('HEAD')
  })

  it('takes the host from a Host header', () => {
    const { host, headers } = readCurl(`curl http://127.0.0.1:8080/ -H 'Host: app.example.com'`)
    expect(host).toBe('app.example.com')
    expect(headers.map(({ name }) => name)).toEqual(['User-Agent', 'Accept'])
  })

  it.each([
    ['wget http://x', 'begins with curl'],
    ['curl --trace-time http://x', "Unknown option '--trace-time'"],
    ['curl -k', 'has no URL'],
    ['curl http://a http://b', 'more than one URL'],
    ['curl -d @body.json http://x', 'is in a file'],
    ['curl ftp://x', 'neither http nor https'],
    [`curl http://x -H 'nonsense'`, 'is not NAME: VALUE'],
    ['curl "http://x', 'is not closed'],
  ])('rejects %s', (command, message) => {
    expect(() => readCurl(command)).toThrow(message)
  })
})

describe('HAR files', () => {
  const entry = (request: object) => ({ startedDateTime: '2026-01-31T12:00:00.000Z', request })

  it('reads requests without pseudo-headers', () => {
    const path = file({
      log: {
        entries: [
          entry({
            method: 'POST',
            url: 'https://app.example.com/a?b',
            httpVersion: 'http/2.0',
            headers: [
              { name: ':authority', value: 'app.example.com' },
              { name: 'x-a', value: '1' },
            ],
            postData: { mimeType: 'text/plain', text: 'hello' },
          }),
        ],
      },
    })
    const [read] = readHar(path)
    expect(read).toMatchObject({
      request: {
        method: 'POST',
        host: 'app.example.com',
        path: '/a',
        query: 'b',
        protocol: 'HTTP/2',
        headers: [{ name: 'x-a', value: '1' }],
        timeMs: Date.UTC(2026, 0, 31, 12),
      },
    })
  })

  it('names the entry that is broken, and reads the others', () => {
    const good = entry({ method: 'GET', url: 'http://x/', headers: [] })
    const path = file({ log: { entries: [good, 1, entry({ method: 'GET', headers: [] }), good] } })
    const read = [...readHar(path)].map((one) => ('problem' in one ? one.problem : 'read'))
    expect(read).toEqual([
      'read',
      `${path}: entry 1: expected an object at request`,
      `${path}: entry 2: expected a text at request.url`,
      'read',
    ])
  })

  it('rejects files that are not HAR', () => {
    expect(() => [...readHar(file('{'))]).toThrow(/JSON/)
    expect(() => [...readHar(file({ log: {} }))]).toThrow('expected a list at log.entries')
    expect(() => [...readHar(join(folder, 'none'))]).toThrow('does not exist')
  })
})

describe('access logs', () => {
  it('reads requests, skips other lines, and names lines that are broken', async () => {
    const line = {
      gateway: 'default/edge',
      listener: 'http',
      'src.addr': '[::1]:4242',
      'http.method': 'GET',
      'http.host': 'app.example.com',
      'http.path': '/a?b?c',
      'http.version': 'HTTP/1.1',
      protocol: 'http',
    }
    const path = file(`${JSON.stringify(line)}\n\n{"msg":"x"}\n{"a\n[]\n`)
    const read = await Array.fromAsync(readAccessLog(path))
    expect(read[0]).toMatchObject({
      request: {
        method: 'GET',
        host: 'app.example.com',
        path: '/a',
        query: 'b?c',
        source: { address: '::1', port: 4242 },
        gateway: 'default/edge',
      },
    })
    const problems = read.slice(1).map((one) => ('problem' in one ? one.problem : ''))
    expect(problems).toHaveLength(2)
    expect(problems[0]).toContain(`${path}: line 4: `)
    expect(problems[1]).toBe(`${path}: line 5: expected an object`)
  })
})
