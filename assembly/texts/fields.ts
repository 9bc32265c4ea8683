// Which strings of a request or of an answer are texts that guards read: every string, unless a field says that it
// is something else. The same tables are in src/engines/messages/mask/text-fields.ts, plain-keys.ts, repeated-texts.ts
// and in src/engines/messages/decided-fields.ts; test/core/texts compares the two.

/** A content: a text, parts, or one part. */
export const FIELD_CONTENT: u32 = 1
/** A top-level setting of a request. */
export const FIELD_SETTING: u32 = 2
/** A string that is no text. */
export const FIELD_LABEL: u32 = 4
/** Reasoning of the assistant. */
export const FIELD_REASONING: u32 = 8
/** Arguments of tool calls, schemas, settings of parts. */
export const FIELD_ARGUMENT: u32 = 16
/** Details of answers that are no texts of the model. */
export const FIELD_DETAIL: u32 = 32
/** Texts that quote or name sources. */
export const FIELD_CITATION: u32 = 64
/** Arguments of calls that the client runs. */
export const FIELD_CLIENT_CALL: u32 = 128
/** An image, and how it was made. */
export const FIELD_IMAGE_CALL: u32 = 256
/** By which guards decide what they read: no name may differ from it only in case. */
export const FIELD_GUARDED: u32 = 512
/** The same for top-level fields, which the gateway decides. */
export const FIELD_DECIDED: u32 = 1024
/** Nothing below it repeats a text of an answer. */
export const FIELD_UNREPEATED: u32 = 2048

export const CONTENT_1: string = 'content output outputs results system instructions '
export const SETTING_1: string = 'model stream stream_options tools tool_choice functions function_call response_format text stop '
export const SETTING_2: string = 'stop_sequences user safety_identifier prompt_cache_key prompt_cache_retention metadata service_tier store '
export const SETTING_3: string = 'modalities audio reasoning reasoning_effort thinking verbosity output_config output_format web_search_options '
export const SETTING_4: string = 'include truncation previous_response_id conversation container mcp_servers speed inference_geo cache_control '
export const SETTING_5: string = 'logit_bias encoding_format safetySettings cachedContent labels anthropic_version anthropic_beta task_type '
export const SETTING_6: string = 'input_type truncate '
export const LABEL_1: string = 'type role name id ids object status phase model format detail media_type mime_type content_type signature '
export const LABEL_2: string = 'b64_json partial_image_b64 namespace server_label version finish_reason native_finish_reason stop_reason '
export const LABEL_3: string = 'service_tier system_fingerprint provider obfuscation url uri '
export const REASONING_1: string = 'thinking reasoning reasoning_content reasoning_details thinking_blocks '
export const ARGUMENT_1: string = 'arguments partial_json parameters input_schema schema json_schema cache_control '
export const DETAIL_1: string = 'usage incomplete_details content_filter_results content_filter_result prompt_filter_results safety_ratings '
export const DETAIL_2: string = 'billing '
export const CITATION_1: string = 'annotation annotations citation citations context search_results '
export const CLIENT_CALL_1: string = 'action actions operation environment '
export const IMAGE_CALL_1: string = 'result size quality background output_format action '
export const GUARDED_1: string = 'content output outputs results title context stdout stderr logs role refusal type text source data variables '
export const GUARDED_2: string = 'transcript media_type file_data filename custom input messages system instructions prompt prediction name '
export const GUARDED_3: string = 'arguments thinking '
export const DECIDED_1: string = 'model stream stream_options max_tokens max_completion_tokens max_output_tokens n best_of temperature '
export const DECIDED_2: string = 'top_p top_k seed dimensions frequency_penalty presence_penalty encoding_format service_tier background '
export const UNREPEATED_1: string = 'arguments input parameters input_schema schema tools usage metadata '
