import { createRequire } from 'node:module'

export function packageVersion(): string {
  const require = createRequire(import.meta.url)
  for (const path of ['../package.json', '../../../../package.json']) {
    try {
      return (require(path) as { version: string }).version
    } catch {
      // Try the next path: dist/ is one level below package.json, src/tools/cli is two levels below it.
    }
  }
  return 'unknown'
}
