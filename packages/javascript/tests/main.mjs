// For Node, Bun and Deno: takes the input from a URL, and prints the result.
import { runAll } from './run.mjs'

const input = await fetch(globalThis.process.argv[2])
console.log(JSON.stringify(await runAll(await input.json())))
