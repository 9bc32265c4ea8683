import { createRequire } from 'node:module'

/** Version of the package. */
export function packageVersion(): string {
  const require = createRequire(import.meta.url)
  for (const path of ['../package.json', '../../package.json']) {
    try {
      return (require(path) as { version: string }).version
    } catch {
      // The other place: dist/ is one level below the package, src/cli two.
    }
  }
  return 'unknown'
}
