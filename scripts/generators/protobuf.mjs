// TypeScript of the protobuf messages, by buf and protoc-gen-es.
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')

/** @returns {Record<string, string>} */
export function generate() {
  const out = mkdtempSync(join(tmpdir(), 'sluice-protobuf-'))
  try {
    const buf = join(root, 'node_modules', '.bin', 'buf')
    const cwd = join(root, 'proto')
    const { status } = spawnSync(buf, ['generate', '-o', out], { cwd, stdio: 'inherit' })
    if (status !== 0) throw new Error(`buf generate ended with ${status}`)
    const files = globSync('gen/**/*.ts', { cwd: out })
    return Object.fromEntries(
      files.map((file) => [`proto/${file}`, readFileSync(join(out, file), 'utf8')]),
    )
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}
