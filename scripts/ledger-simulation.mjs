// `npm run ledger-simulation [-- --seed N | --seeds FROM..TO] [--minutes M | --hours H]`: the ledger of
// budgets with several replicas and proxies, NATS as a model, faults, and a virtual clock.
// Exit code: 0 every seed passes, 1 one fails, 2 wrong usage.
import { runSimulation } from './run-simulation.mjs'

await runSimulation('ledger-simulation')
