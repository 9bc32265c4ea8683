// Sends requests until the file PATH exists, on connections that are kept alive. Then it prints how many
// succeeded and how many failed:  load.mjs URL PATH
import { existsSync, writeFileSync } from 'node:fs'

const [url, path] = process.argv.slice(2)
let succeeded = 0
let failed = 0

async function client() {
  while (!existsSync(path)) {
    const isSuccess = await fetch(url)
      .then(async (response) => (await response.text()) === 'hello\n')
      .catch(() => false)
    if (isSuccess) succeeded++
    else failed++
  }
}

console.log('ready')
await Promise.all(Array.from({ length: 4 }, client))
writeFileSync(
  path,
  `${succeeded > 100 ? 'more than 100' : succeeded} succeeded, ${failed} failed\n`,
)
