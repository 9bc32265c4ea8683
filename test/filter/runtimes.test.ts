/**
 * The engines for WebAssembly that the Envoy of the tests has, as docs/embedding.md says. If a later build has more of
 * them, this fails, and the filter can be tested in them, too.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { envoyFilterFor } from '../support/envoy.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { manifestsFor } from './manifests.ts'

describeWithParts(['envoy'], 'the runtimes of Envoy [design.embed]', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-runtimes-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  /** What Envoy says about a configuration with the filter in a runtime. */
  async function validate(runtime: string): Promise<string> {
    const filter = await envoyFilterFor(folder, manifestsFor({}))
    const text = JSON.stringify(filter).replace('wasm.runtime.v8', `wasm.runtime.${runtime}`)
    const type = 'type.googleapis.com/envoy.extensions.filters'
    const router = { '@type': `${type}.http.router.v3.Router` }
    const manager = {
      '@type': `${type}.network.http_connection_manager.v3.HttpConnectionManager`,
      stat_prefix: 'http',
      route_config: {},
      http_filters: [JSON.parse(text), { name: 'router', typed_config: router }],
    }
    const config = {
      static_resources: {
        listeners: [
          {
            name: 'http',
            address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
            filter_chains: [{ filters: [{ name: 'manager', typed_config: manager }] }],
          },
        ],
      },
    }
    const file = join(folder, `${runtime}.json`)
    writeFileSync(file, JSON.stringify(config))
    const args = ['--mode', 'validate', '-l', 'warning', '-c', file]
    const { stdout, stderr } = spawnSync(join(partPath('envoy'), 'envoy'), args, {
      encoding: 'utf8',
    })
    return stdout + stderr
  }

  it('can load the filter in v8', async () => {
    expect(await validate('v8')).toContain('OK')
  })

  it.each(['wasmtime', 'wamr'])('was compiled without %s', async (runtime) => {
    const said = await validate(runtime)
    expect(said).toContain(`envoy.wasm.runtime.${runtime}`)
    expect(said).toContain('Envoy was compiled without support for it')
  })
})
