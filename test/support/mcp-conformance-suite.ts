/** Runs the official conformance suite for MCP servers. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { partPath } from './parts.ts'

/** The line of the summary for each scenario, such as `2 passed, 0 failed`. */
export async function judgeServer(
  part: 'mcp-conformance' | 'mcp-modern-conformance',
  port: number,
  selection: readonly string[],
): Promise<Record<string, string>> {
  const suite = join(partPath(part), 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
  const options = [suite, 'server', '--url', `http://127.0.0.1:${port}/mcp`, ...selection]
  const { stdout } = await promisify(execFile)(process.execPath, options, {
    maxBuffer: 1 << 26,
  }).catch((failed: { stdout: string }) => failed)
  const lines = [...stdout.matchAll(/^[✓✗] ([\w-]+): (\d+ passed, \d+ failed)/gm)]
  return Object.fromEntries(lines.map(([, name, verdict]) => [name, verdict]))
}
