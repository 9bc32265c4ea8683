// `npm run demo:ai`: starts mock vendors and the gateway on examples/ai, and shows masking, a limit
// of tokens and a failover by requests. Needs no account. Goes on until Ctrl-C; `--once`: until the
// requests are answered.
import { tour } from '../examples/ai/tour.mjs'
import { prepare, startGateway } from './demo.mjs'

const given = process.argv.slice(2)
await prepare()
const gateway = await startGateway('-f', 'examples/ai', ...given.filter((one) => one !== '--once'))
await tour('http://127.0.0.1:8080', (line) => console.log(`\n${line}`))
if (given.includes('--once')) gateway.stop()
else {
  console.log(`
Point an SDK at it, with any key:

  new OpenAI({ baseURL: 'http://127.0.0.1:8080/assistant/v1', apiKey: 'any' })
  new Anthropic({ baseURL: 'http://127.0.0.1:8080/assistant', apiKey: 'any' })

Ctrl-C ends everything.`)
}
