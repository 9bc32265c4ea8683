// `npm run cluster-simulation [-- --seed N | --seeds FROM..TO] [--minutes M | --hours H]`: several
// replicas and proxies, NATS and the API server as models, faults, and a virtual clock.
// Exit code: 0 every seed passes, 1 one fails, 2 wrong usage.
import { runSimulation } from './run-simulation.mjs'

await runSimulation('cluster-simulation')
