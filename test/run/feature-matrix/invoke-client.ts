/** The official SDK of Bedrock with InvokeModel and the messages of vendor C, as a client of the matrix. */
import type Anthropic from '@anthropic-ai/sdk'
import { MessageStream } from '@anthropic-ai/sdk/lib/MessageStream'
import {
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
  type ResponseStream,
} from '@aws-sdk/client-bedrock-runtime'
import type { Client } from './clients.ts'
import { bedrock, withStatus } from './converse-client.ts'
import { messagesRequest, seenOfMessage } from './messages-client.ts'

/** The events in the chunks of a stream, one a line. */
async function* linesOf(stream: AsyncIterable<ResponseStream> | undefined) {
  for await (const { chunk } of stream ?? []) {
    if (chunk?.bytes !== undefined) yield Buffer.concat([chunk.bytes, Buffer.from('\n')])
  }
}

const collected = (stream: AsyncIterable<ResponseStream> | undefined) =>
  MessageStream.fromReadableStream(ReadableStream.from(linesOf(stream))).finalMessage()

export const invokeModel: Client = {
  name: 'InvokeModel',
  lacks: ['audio'],
  async ask(base, model, asked, isStreamed, results) {
    const body = { anthropic_version: 'bedrock-2023-05-31', ...messagesRequest(asked, results) }
    const request = {
      modelId: model,
      contentType: 'application/json',
      body: JSON.stringify(body),
    }
    if (isStreamed) {
      const command = new InvokeModelWithResponseStreamCommand(request)
      const { body: stream } = await bedrock(base).send(command).catch(withStatus)
      return seenOfMessage(await collected(stream))
    }
    const answer = await bedrock(base).send(new InvokeModelCommand(request)).catch(withStatus)
    return seenOfMessage(JSON.parse(answer.body.transformToString()) as Anthropic.Message)
  },
}
