// What the lint knows of Envoy's messages: the fields that it judges elsewhere or that are harmless, and the values that are. Everything
// that is not here is not judged, a field that a later Envoy gains too. Names and numbers are those of Envoy 1.40's .proto files.

/**
 * Fields of each message, separated by spaces: `field` with any value, `field=a|b` with these values, `field:Message` with that message (also in
 * a list), `field<Message` a map of it. The message `Any` is an extension: its own type says which message it is. A name with dots is the
 * type of an extension without `envoy.` and `extensions.`; without dots, the name of a message in others.
 */
export const knownMessages: Readonly<Record<string, string>> = {
  'config.bootstrap.v3.Bootstrap': `node admin:Admin static_resources:StaticResources layered_runtime:LayeredRuntime overload_manager:OverloadManager
    stats_flush_interval stats_flush_on_admin stats_config cluster_manager:ClusterManager watchdog watchdogs hds_config=
    dynamic_resources header_prefix= flags_path stats_server_version_override default_config_source grpc_async_client_manager_config
    typed_dns_resolver_config dns_resolution_config application_log_config memory_allocator_manager
    stats_sinks:Any default_socket_interface node_context_params`,
  Admin:
    'address:Address ignore_global_conn_limit profile_path socket_options access_log:Any access_log_path=/dev/null allow_paths',
  StaticResources: 'listeners:config.listener.v3.Listener clusters:config.cluster.v3.Cluster secrets:Secret',
  Secret: 'name tls_certificate validation_context session_ticket_keys',
  ClusterManager:
    'outlier_detection load_stats_config local_cluster_name enable_deferred_cluster_creation upstream_bind_config',
  LayeredRuntime: 'layers:RuntimeLayer',
  RuntimeLayer: 'name static_layer:StaticRuntime admin_layer',
  StaticRuntime: `re2 overload global_downstream_max_connections envoy.reloadable_features.http_reject_path_with_fragment
    re2.max_program_size.error_level re2.max_program_size.warn_level overload.global_downstream_max_connections`,
  OverloadManager: 'refresh_interval resource_monitors:Any actions buffer_factory_config loadshed_points',
  Address: 'socket_address:SocketAddress pipe',
  SocketAddress: 'protocol=TCP|0 address port_value ipv4_compat',
  'config.listener.v3.Listener': `name address:Address additional_addresses:AdditionalAddress stat_prefix filter_chains:FilterChain default_filter_chain:FilterChain
    per_connection_buffer_limit_bytes metadata drain_type listener_filters:Any listener_filters_timeout continue_on_listener_filters_timeout
    transparent freebind socket_options tcp_fast_open_queue_length traffic_direction access_log:Any enable_reuse_port reuse_port
    connection_balance_config tcp_backlog_size bind_to_port ignore_global_conn_limit bypass_overload_manager use_original_dst
    max_connections_to_accept_per_socket_event enable_mptcp deprecated_v1`,
  FilterChain:
    'filter_chain_match filters:Any transport_socket:Any transport_socket_connect_timeout metadata name use_proxy_proto=false',
  'filters.network.http_connection_manager.v3.HttpConnectionManager': `codec_type=AUTO|HTTP1|HTTP2|0|1|2 stat_prefix rds
    route_config:config.route.v3.RouteConfiguration http_filters:HttpFilter add_user_agent tracing:Tracing
    common_http_protocol_options:HttpProtocol http_protocol_options:Http1 http2_protocol_options:Http2 server_name
    server_header_transformation scheme_header_transformation max_request_headers_kb stream_idle_timeout stream_flush_timeout
    request_timeout request_headers_timeout drain_timeout max_connection_duration access_log:Any access_log_options access_log_flush_interval
    flush_access_log_on_new_request use_remote_address xff_num_trusted_hops skip_xff_append via generate_request_id
    preserve_external_request_id always_set_request_id_in_response forward_client_cert_details=SANITIZE|SANITIZE_SET|APPEND_FORWARD|0|2|3 set_current_client_cert_details
    proxy_100_continue proxy100_continue upgrade_configs:ManagerUpgrade normalize_path merge_slashes path_with_escaped_slashes_action
    request_id_extension:Any local_reply_config:LocalReply strip_any_host_port strip_matching_host_port strip_trailing_host_dot
    stream_error_on_invalid_http_message early_header_mutation_extensions:Any delayed_close_timeout represent_ipv4_remote_address_as_ipv4_mapped_ipv6
    internal_address_config:InternalAddress append_x_forwarded_port append_local_overload drop_request_when_overloaded idle_timeout http1_safe_max_connection_duration
    original_ip_detection_extensions:Any`,
  InternalAddress: 'unix_sockets=false',
  HttpFilter: 'name typed_config:Any is_optional disabled config_discovery',
  HttpProtocol:
    'idle_timeout max_connection_duration max_headers_count max_response_headers_kb max_stream_duration headers_with_underscores_action max_requests_per_connection',
  Http1:
    'allow_absolute_url allow_chunked_length=false allow_custom_methods accept_http_10 default_host_for_http_10= header_key_format:Any enable_trailers override_stream_error_on_invalid_http_message send_fully_qualified_url=false use_balsa_parser',
  Http2: `hpack_table_size max_concurrent_streams initial_stream_window_size initial_connection_window_size allow_connect=false
    max_outbound_frames max_outbound_control_frames max_consecutive_inbound_frames_with_empty_payload
    max_inbound_priority_frames_per_stream max_inbound_window_update_frames_per_data_frame_sent override_stream_error_on_invalid_http_message
    connection_keepalive max_metadata_size use_oghttp2_codec`,
  Tracing:
    'client_sampling random_sampling overall_sampling verbose max_path_tag_length custom_tags:CustomTag provider:Any spawn_upstream_span operation',
  CustomTag: 'tag literal environment request_header metadata',
  ManagerUpgrade: 'upgrade_type enabled filters:HttpFilter',
  LocalReply: 'mappers:LocalReplyMapper body_format',
  LocalReplyMapper: 'filter status_code body body_format_override headers_to_add:ResponseHeader',
  ResponseHeader: 'header append_action append keep_empty_value',
  'config.route.v3.RouteConfiguration': `name virtual_hosts:VirtualHost internal_only_headers response_headers_to_add:ResponseHeader
    response_headers_to_remove request_headers_to_add:RequestHeader request_headers_to_remove validate_clusters
    max_direct_response_body_size_bytes most_specific_header_mutations_wins typed_per_filter_config<Any metadata ignore_port_in_host_matching`,
  VirtualHost: `name domains routes:Route require_tls virtual_clusters request_headers_to_add:RequestHeader request_headers_to_remove
    response_headers_to_add:ResponseHeader response_headers_to_remove typed_per_filter_config<Any include_request_attempt_count
    include_attempt_count_in_response include_is_timeout_retry_header retry_policy per_request_buffer_limit_bytes request_body_buffer_limit
    metadata`,
  Route: `name match redirect:Redirect route:RouteAction direct_response:DirectResponse metadata decorator typed_per_filter_config<Any non_forwarding_action
    request_headers_to_add:RequestHeader request_headers_to_remove response_headers_to_add:ResponseHeader response_headers_to_remove
    per_request_buffer_limit_bytes request_body_buffer_limit stat_prefix tracing:Tracing`,
  RequestHeader: 'header append_action append keep_empty_value',
  Redirect: 'https_redirect scheme_redirect port_redirect response_code',
  DirectResponse: 'status body:DataSource',
  DataSource: 'inline_string inline_bytes',
  RouteAction: `cluster weighted_clusters:WeightedClusters timeout idle_timeout flush_timeout retry_policy priority upgrade_configs:RouteUpgrade max_stream_duration
    max_grpc_timeout grpc_timeout_offset hash_policy metadata_match host_rewrite_literal auto_host_rewrite rate_limits include_vh_rate_limits
    cors early_data_policy cluster_not_found_response_code append_x_forwarded_host=false`,
  RouteUpgrade: 'upgrade_type enabled',
  WeightedClusters: 'clusters:WeightedCluster total_weight runtime_key_prefix',
  WeightedCluster: `name weight metadata_match request_headers_to_add:RequestHeader request_headers_to_remove
    response_headers_to_add:ResponseHeader response_headers_to_remove typed_per_filter_config<Any host_rewrite_literal`,
  'config.cluster.v3.Cluster': `name alt_stat_name cluster_type:Any type=STATIC|STRICT_DNS|LOGICAL_DNS|EDS|ORIGINAL_DST|0|1|2|3|4 eds_cluster_config connect_timeout
    per_connection_buffer_limit_bytes lb_policy load_assignment:config.endpoint.v3.ClusterLoadAssignment health_checks:HealthCheck max_requests_per_connection
    circuit_breakers upstream_http_protocol_options common_http_protocol_options:HttpProtocol http_protocol_options:Http1
    http2_protocol_options:Http2 typed_extension_protocol_options<Any dns_refresh_rate dns_failure_refresh_rate dns_jitter respect_dns_ttl
    dns_lookup_family dns_resolvers use_tcp_for_dns_lookups outlier_detection cleanup_interval upstream_bind_config ring_hash_lb_config
    maglev_lb_config original_dst_lb_config least_request_lb_config round_robin_lb_config common_lb_config load_balancing_policy metadata
    protocol_selection upstream_connection_options close_connections_on_host_health_failure ignore_health_on_host_removal filters:Any
    transport_socket:Any transport_socket_matches:SocketMatch wait_for_warm_on_init track_cluster_stats track_timeout_budgets preconnect_policy
    connection_pool_per_downstream_connection typed_dns_resolver_config`,
  SocketMatch: 'name match transport_socket:Any',
  HealthCheck: `timeout interval initial_jitter interval_jitter interval_jitter_percent unhealthy_threshold healthy_threshold reuse_connection
    http_health_check grpc_health_check tcp_health_check no_traffic_interval no_traffic_healthy_interval unhealthy_interval unhealthy_edge_interval
    healthy_edge_interval always_log_health_check_failures always_log_health_check_success tls_options`,
  'clusters.dns.v3.DnsCluster': `dns_refresh_rate dns_failure_refresh_rate respect_dns_ttl dns_jitter typed_dns_resolver_config dns_lookup_family
    all_addresses_in_single_endpoint`,
  'clusters.aggregate.v3.ClusterConfig': 'clusters',
  'config.endpoint.v3.ClusterLoadAssignment': 'cluster_name endpoints:LocalityEndpoints named_endpoints policy',
  LocalityEndpoints: 'locality lb_endpoints:LbEndpoint load_balancing_weight priority proximity metadata',
  LbEndpoint: 'endpoint:Endpoint health_status metadata load_balancing_weight',
  AdditionalAddress: 'address:Address socket_options',
  Endpoint: 'address:Address additional_addresses:AdditionalAddress health_check_config hostname',

  'filters.http.ext_authz.v3.ExtAuthz': `grpc_service:GrpcService http_service failure_mode_allow failure_mode_allow_header_add status_on_error stat_prefix
    clear_route_cache include_peer_certificate include_tls_session encode_raw_headers allowed_headers disallowed_headers validate_mutations
    decoder_header_mutation_rules charge_cluster_response_stats emit_filter_state_stats enable_dynamic_metadata_ingestion
    max_denied_response_body_bytes transport_api_version filter_enabled filter_enabled_metadata deny_at_disable shadow_mode with_request_body
    bootstrap_metadata_labels_key metadata_context_namespaces typed_metadata_context_namespaces route_metadata_context_namespaces
    route_typed_metadata_context_namespaces filter_metadata`,
  GrpcService: 'envoy_grpc google_grpc timeout retry_policy',
  'filters.http.ext_authz.v3.ExtAuthzPerRoute': 'disabled check_settings:CheckSettings',
  CheckSettings: 'context_extensions disable_request_body_buffering with_request_body grpc_service',
  'filters.http.mcp.v3.Mcp':
    'traffic_mode clear_route_cache max_request_body_size request_storage_mode reject_duplicate_keys attribute_source max_supported_protocol_version',
  'filters.http.rbac.v3.RBAC': 'rules rules_stat_prefix shadow_rules shadow_rules_stat_prefix track_per_rule_stats',
  'filters.http.rbac.v3.RBACPerRoute': 'rbac:filters.http.rbac.v3.RBAC',
  'filters.http.header_mutation.v3.HeaderMutation': 'mutations:Mutations most_specific_header_mutations_wins',
  'filters.http.header_mutation.v3.HeaderMutationPerRoute': 'mutations:Mutations',
  Mutations: `request_mutations:Mutation request_trailers_mutations:Mutation response_mutations:ResponseMutation
    response_trailers_mutations:ResponseMutation`,
  Mutation: 'remove remove_on_match append:RequestHeader',
  ResponseMutation: 'remove remove_on_match append:ResponseHeader',
  'http.early_header_mutation.header_mutation.v3.HeaderMutation': 'mutations:Mutation',
  'filters.http.cors.v3.Cors': '',
  'filters.http.cors.v3.CorsPolicy': `allow_origin_string_match allow_methods allow_headers expose_headers max_age allow_credentials filter_enabled shadow_enabled
    allow_private_network_access forward_not_matching_preflights=false`,
  'filters.http.router.v3.Router': `suppress_envoy_headers dynamic_stats start_child_span strict_check_headers respect_expected_rq_timeout upstream_log:Any
    suppress_grpc_request_failure_code_stats upstream_http_filters:HttpFilter upstream_log_options`,
  'filters.http.health_check.v3.HealthCheck':
    'pass_through_mode=false headers cache_time cluster_min_healthy_percentages',
  'filters.http.grpc_web.v3.GrpcWeb': '',
  'filters.http.grpc_stats.v3.FilterConfig':
    'emit_filter_state individual_method_stats_allowlist stats_for_all_methods enable_upstream_stats replace_dots_in_grpc_service_name',
  'filters.http.upstream_codec.v3.UpstreamCodec': '',
  'filters.http.buffer.v3.Buffer': 'max_request_bytes',
  'filters.http.buffer.v3.BufferPerRoute': 'disabled buffer',
  'filters.http.csrf.v3.CsrfPolicy': 'filter_enabled shadow_enabled additional_origins',
  'filters.http.bandwidth_limit.v3.BandwidthLimit':
    'stat_prefix enable_mode limit_kbps fill_interval runtime_enabled enable_response_trailers response_trailer_prefix',
  'filters.http.admission_control.v3.AdmissionControl': '*',
  'filters.http.adaptive_concurrency.v3.AdaptiveConcurrency': '*',
  'filters.http.decompressor.v3.Decompressor': '*',
  'filters.http.compressor.v3.Compressor':
    'compressor_library request_direction_config response_direction_config choose_first content_length content_type disable_on_etag_header remove_accept_encoding_header runtime_enabled',
  'filters.http.fault.v3.HTTPFault': 'delay abort max_active_faults',
  'filters.http.local_ratelimit.v3.LocalRateLimit':
    'stat_prefix token_bucket status filter_enabled filter_enforced descriptors stage local_rate_limit_per_downstream_connection enable_x_ratelimit_headers max_dynamic_descriptors rate_limits vh_rate_limits always_consume_default_token_bucket rate_limited_as_resource_exhausted',
  'config.route.v3.FilterConfig': 'config:Any is_optional disabled',
  'access_loggers.stream.v3.StdoutAccessLog': 'log_format',
  'access_loggers.stream.v3.StderrAccessLog': 'log_format',
  'access_loggers.file.v3.FileAccessLog': 'path format json_format typed_json_format log_format',
  'filters.network.tcp_proxy.v3.TcpProxy':
    'stat_prefix cluster weighted_clusters idle_timeout access_log:Any max_connect_attempts hash_policy metadata_match max_downstream_connection_duration upstream_idle_timeout downstream_idle_timeout',
  'filters.network.rbac.v3.RBAC': 'rules shadow_rules stat_prefix shadow_rules_stat_prefix enforcement_type delay_deny',
  'filters.network.ext_authz.v3.ExtAuthz':
    'grpc_service:GrpcService stat_prefix transport_api_version failure_mode_allow filter_enabled_metadata include_peer_certificate include_tls_session send_tls_alert_on_denial bootstrap_metadata_labels_key',
  'filters.network.connection_limit.v3.ConnectionLimit': 'stat_prefix max_connections delay runtime_enabled',
  'filters.listener.tls_inspector.v3.TlsInspector':
    'initial_read_buffer_size enable_ja3_fingerprinting enable_ja4_fingerprinting',
  'filters.listener.http_inspector.v3.HttpInspector': '',
  'filters.listener.original_dst.v3.OriginalDst': '',
  'filters.listener.original_src.v3.OriginalSrc': 'bind_port mark',
  'transport_sockets.tls.v3.UpstreamTlsContext':
    'common_tls_context:CommonTls sni allow_renegotiation max_session_keys auto_host_sni auto_sni_san_validation enforce_rsa_key_usage',
  'transport_sockets.tls.v3.DownstreamTlsContext':
    'common_tls_context:CommonTls require_client_certificate require_sni session_ticket_keys session_timeout ocsp_staple_policy full_scan_certs_on_sni_mismatch disable_stateless_session_resumption disable_stateful_session_resumption prefer_client_ciphers',
  CommonTls: `tls_params tls_certificates tls_certificate_sds_secret_configs validation_context validation_context_sds_secret_config
    combined_validation_context alpn_protocols`,
  'transport_sockets.raw_buffer.v3.RawBuffer': '',
  'upstreams.http.v3.HttpProtocolOptions':
    'common_http_protocol_options:HttpProtocol upstream_http_protocol_options explicit_http_config:ExplicitHttp use_downstream_protocol_config auto_config http_filters:HttpFilter',
  ExplicitHttp: 'http_protocol_options:Http1 http2_protocol_options:Http2',
  'http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig': '',
  'request_id.uuid.v3.UuidRequestIdConfig': 'pack_trace_reason use_request_id_for_trace_sampling',
  'resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig': 'max_active_downstream_connections',
  'resource_monitors.fixed_heap.v3.FixedHeapConfig': 'max_heap_size_bytes',
  'retry.host.previous_hosts.v3.PreviousHostsPredicate': '',
  'config.metrics.v3.StatsdSink': 'address tcp_cluster_name prefix',
  'config.trace.v3.OpenTelemetryConfig':
    'grpc_service:GrpcService http_service service_name resource_detectors sampler',
  // What istiod and Envoy Gateway write around the check: they count, name the peer of the mesh, or choose its protocol.
  'stats.PluginConfig': '*',
  'istio.envoy.config.filter.http.alpn.v2alpha1.FilterConfig': '*',
  'io.istio.http.peer_metadata.Config': '*',
  'istio.tcp.metadataexchange.config.MetadataExchange': '*',
  'io.istio.network.metadata_exchange.Config': '*',
  'istio.http.peer_metadata.Config': '*',
  'tcp.metadataexchange.config.MetadataExchange': '*',
};

/** What a field or an extension that is not judged could do, by its name. */
export const possibleHarm: readonly (readonly [RegExp, string])[] = [
  [/\.(?:lua|wasm|golang|ext_proc|dynamic_modules|composite)\./, 'runs code or a service of its own on each request'],
  [
    /header_to_metadata|set_metadata|set_filter_state|json_to_metadata|payload_to_metadata/,
    'writes metadata, such as the decision that the guard reads',
  ],
  [/rewrite/, 'serves another path or host than the one in the request'],
  [/mirror/, 'sends a copy of each request elsewhere'],
  [/redirect/, 'sends the request or the client to another path'],
  [/cluster_header|cluster_specifier|inline_cluster/, 'lets the request choose where it goes'],
  [/cluster_type|dynamic_forward_proxy|aggregate|lb_subset|subset/, 'reaches addresses under another name'],
  [/formatter|body_format|access_log|tap|otel|open_telemetry/, 'can print headers of the request, the token too'],
  [/internal_address|envoy_internal_address|internal_listener|api_listener|udp/, 'is another way in'],
  [/runtime|rtds/, 'changes the behaviour of Envoy while it runs'],
  [/credential|jwt_authn|oauth2|basic_auth|api_key/, 'reads or sets the token of a request'],
  [/matcher|on_demand|scoped|vhds|rds|ecds/, 'chooses routes or filters in a way that the lint does not follow'],
];
