import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { useAuthority, useGateway, useListening } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import { gateway, httpRoute, staticBackend, tlsSecret, toBackend } from '../support/manifests.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const { port, securePort } = await freePorts('port', 'securePort')

describeWithParts(['h2spec'], 'h2spec, all cases, against `sluice run`', () => {
  const authority = useAuthority()
  // Bodies are cut in the middle by many of the cases. An answer before the end of a request would
  // end its stream, on which frames that should be wrong may then be ignored (RFC 9113 5.1).
  const upstream = useListening(
    createServer((request, response) => {
      request.on('error', () => {})
      request.resume()
      request.once('end', () => response.end('some data for the windows'))
    }),
  )
  useGateway(() => ({
    manifests: [
      gateway(port, {
        listeners: [
          { name: 'http', port, protocol: 'HTTP' },
          {
            name: 'https',
            port: securePort,
            protocol: 'HTTPS',
            tls: { certificateRefs: [{ name: 'edge-tls' }] },
          },
        ],
      }),
      tlsSecret('edge-tls', authority.issue(['localhost'])),
      staticBackend('shop', upstream.port, {
        http: { version: 'HTTP1' },
      }),
      httpRoute('all', { rules: [{ backendRefs: [toBackend('shop')] }] }),
    ],
  }))

  /** The failed cases, and the last line. */
  const run = async (...args: string[]) => {
    // Seconds for each answer: far more than one takes, on a busy machine as well.
    const all = ['--strict', '--host', '127.0.0.1', '--timeout', '20', ...args]
    const { stdout } = await promisify(execFile)(partPath('h2spec'), all).catch(
      (failed: { stdout: string }) => failed,
    )
    const failures = stdout.slice(stdout.indexOf('Failures:'))
    const failed = [...failures.matchAll(/× \d+: (.*)/g)].map(([, title]) => title)
    return { failed, summary: stdout.trim().split('\n').at(-1) }
  }

  it('passes over TLS', async () => {
    const { failed, summary } = await run('--tls', '--insecure', '--port', String(securePort))
    expect(failed).toEqual([])
    expect(summary).toMatch(/^\d{3} tests, (\d{3}) passed, 0 skipped, 0 failed$/)
  }, 120_000)

  it('passes in plaintext, except that an invalid preface is answered as HTTP/1.1', async () => {
    const { failed, summary } = await run('--port', String(port))
    expect(failed).toEqual(['Sends invalid connection preface'])
    expect(summary).toMatch(/ 0 skipped, 1 failed$/)
  }, 120_000)
})
